// Rules of a subscription: added, listed and removed by the SDK's own rule manager.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, play, promise } from "./stage.mjs";

const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
const TOPIC = "topic.1";
const NAME = "rules";
const VALUES = { tenant: "t17", since: new Date("2000-01-01T00:00:00Z"), count: 2, open: true };

async function rules(manager) {
  const found = {};
  for (const rule of await manager.getRules()) found[rule.name] = rule;
  return found;
}

async function receive() {
  const receiver = client.createReceiver(TOPIC, NAME, { receiveMode: "receiveAndDelete" });
  const received = [];
  for (;;) {
    const messages = await receiver.receiveMessages(10, { maxWaitTimeInMs: 500 });
    if (messages.length === 0) break;
    received.push(...messages.map((message) => message.body));
  }
  await receiver.close();
  return received;
}

promise("a_subscription_has_a_rule_for_everything_until_it_is_removed", async () => {
  const manager = client.createRuleManager(TOPIC, NAME);
  const { $Default: rule } = await rules(manager);
  assert.equal(rule.filter.sqlExpression, "1=1");
  await manager.deleteRule("$Default");
  assert.deepEqual(await rules(manager), {});
  await assert.rejects(manager.deleteRule("$Default"), { code: "MessagingEntityNotFound" });
});

promise("rules_are_added_and_listed_as_they_were_given_and_choose_messages", async () => {
  const manager = client.createRuleManager(TOPIC, NAME);
  await manager.createRule("marked", { sqlExpression: "sys.Label = 'mark'" }, { sqlExpression: "SET marked = TRUE" });
  await manager.createRule("large", { sqlExpression: "amount > 100" });
  await manager.createRule("tenant", { correlationId: "c1", subject: "s1", applicationProperties: VALUES });
  await assert.rejects(manager.createRule("large", { sqlExpression: "amount > 100" }), {
    code: "MessagingEntityAlreadyExists",
    message: /The messaging entity '.*large' already exists/,
  });
  await assert.rejects(manager.createRule("wrong", { sqlExpression: "amount >" }));
  const { large, marked, tenant } = await rules(manager);
  assert.equal(large.filter.sqlExpression, "amount > 100");
  assert.equal(large.action?.sqlExpression, undefined);
  assert.equal(marked.action.sqlExpression, "SET marked = TRUE");
  assert.equal(tenant.filter.correlationId, "c1");
  assert.equal(tenant.filter.subject, "s1");
  assert.deepEqual(tenant.filter.applicationProperties, VALUES);
  const names = [];
  for await (const page of manager.listRules().byPage({ maxPageSize: 1 })) names.push(...page.map((rule) => rule.name));
  assert.deepEqual(names, ["large", "marked", "tenant"]);

  const sender = client.createSender(TOPIC);
  const send = (body, more) => sender.sendMessages({ body, sessionId: "s", ...more });
  await send("small", { applicationProperties: { amount: 1 } });
  await send("large", { applicationProperties: { amount: 101 } });
  await send("marked", { subject: "mark" });
  await send("tenant", { correlationId: "c1", subject: "s1", applicationProperties: VALUES });
  await send("other", { correlationId: "c1", subject: "s1", applicationProperties: { ...VALUES, since: new Date("2000-01-01T00:00:01Z") } });
  assert.deepEqual(await receive(), ["large", "marked", "tenant"]);
  for (const name of ["large", "marked", "tenant"]) await manager.deleteRule(name);
  await send("none", { applicationProperties: { amount: 101 } });
  assert.deepEqual(await receive(), []);
});

await play();
await client.close();
