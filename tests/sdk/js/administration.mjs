// Queues, topics, subscriptions and rules, made and changed by the client for administration.
import assert from "node:assert/strict";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, play, promise } from "./stage.mjs";

// NODE_EXTRA_CA_CERTS names the certificate of the daemon.
const PORT = process.env.SERIATIM_AMQP.split(":").pop();
const CONNECTION =
  `Endpoint=sb://localhost:${PORT};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0`;
const admin = new ServiceBusAdministrationClient(CONNECTION, { retryOptions: { maxRetries: 0 } });

const refusedAs = (code) => (error) => assert.equal(error.code, code, error.message) ?? true;

promise("a_queue_is_what_its_maker_says", async () => {
  const made = await admin.createQueue("made-js", {
    lockDuration: "PT45S", maxDeliveryCount: 20, requiresSession: true, defaultMessageTimeToLive: "P2D",
    deadLetteringOnMessageExpiration: true, requiresDuplicateDetection: true,
    duplicateDetectionHistoryTimeWindow: "PT1M", userMetadata: "js", maxSizeInMegabytes: 2048,
    autoDeleteOnIdle: "PT1H", enableBatchedOperations: false, status: "ReceiveDisabled",
  });
  for (const queue of [made, await admin.getQueue("made-js")]) {
    assert.equal(queue.name, "made-js");
    assert.deepEqual(
      [queue.lockDuration, queue.maxDeliveryCount, queue.requiresSession, queue.defaultMessageTimeToLive],
      ["PT45S", 20, true, "P2D"],
    );
    assert.deepEqual(
      [queue.duplicateDetectionHistoryTimeWindow, queue.userMetadata, queue.maxSizeInMegabytes, queue.autoDeleteOnIdle],
      ["PT1M", "js", 2048, "PT1H"],
    );
    assert.deepEqual([queue.enableBatchedOperations, queue.status], [false, "ReceiveDisabled"]);
  }
  made.status = "Active";
  made.maxDeliveryCount = 21;
  const changed = await admin.updateQueue(made);
  assert.deepEqual([changed.status, changed.maxDeliveryCount], ["Active", 21]);
  const counts = await admin.getQueueRuntimeProperties("made-js");
  assert.deepEqual([counts.totalMessageCount, counts.scheduledMessageCount], [0, 0]);
  assert.ok(counts.createdAt.getTime() > 0 && counts.modifiedAt >= counts.createdAt);
  await admin.deleteQueue("made-js");
  assert.equal(await admin.queueExists("made-js"), false);
});

promise("refusals_are_known_by_their_codes", async () => {
  await admin.createQueue("known-js");
  await assert.rejects(admin.createQueue("known-js"), refusedAs("MessageEntityAlreadyExistsError"));
  await assert.rejects(admin.getQueue("never-js"), refusedAs("MessageEntityNotFoundError"));
  await assert.rejects(admin.deleteQueue("never-js"), refusedAs("MessageEntityNotFoundError"));
  await assert.rejects(admin.createSubscription("never-js", "s"), refusedAs("MessageEntityNotFoundError"));
  await assert.rejects(admin.createQueue("wrong-js", { lockDuration: "soon" }), refusedAs("ServiceError"));
  assert.deepEqual([await admin.queueExists("known-js"), await admin.topicExists("never-js")], [true, false]);
});

promise("topics_subscriptions_and_rules_are_made_changed_and_listed", async () => {
  await admin.createTopic("topic-js", { userMetadata: "t" });
  const subscription = await admin.createSubscription("topic-js", "one", {
    defaultRuleOptions: { name: "mine", filter: { sqlExpression: "color = @c", sqlParameters: { "@c": "red" } } },
  });
  assert.deepEqual([subscription.topicName, subscription.subscriptionName], ["topic-js", "one"]);
  const mine = await admin.getRule("topic-js", "one", "mine");
  assert.deepEqual(mine.filter, { sqlExpression: "color = @c", sqlParameters: { "@c": "red" } });
  const values = { size: 3, open: true, ratio: 0.5, name: "n" };
  await admin.createRule("topic-js", "one", "more", { subject: "s", applicationProperties: values });
  const more = await admin.getRule("topic-js", "one", "more");
  assert.deepEqual([more.name, more.filter.subject, more.filter.applicationProperties], ["more", "s", values]);
  more.action = { sqlExpression: "SET a = 1" };
  assert.equal((await admin.updateRule("topic-js", "one", more)).action.sqlExpression, "SET a = 1");
  const names = [];
  for await (const rule of admin.listRules("topic-js", "one")) names.push(rule.name);
  assert.deepEqual(names, ["mine", "more"]);
  const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
  await client.createSender("topic-js").sendMessages([
    { body: 1, applicationProperties: { color: "red" } }, { body: 2, applicationProperties: { color: "blue" } },
  ]);
  await client.close();
  const runtime = await admin.getSubscriptionRuntimeProperties("topic-js", "one");
  assert.equal(runtime.activeMessageCount, 1);
  subscription.lockDuration = "PT30S";
  assert.equal((await admin.updateSubscription(subscription)).lockDuration, "PT30S");
  const subscriptions = [];
  for await (const found of admin.listSubscriptions("topic-js")) subscriptions.push(found.subscriptionName);
  assert.deepEqual(subscriptions, ["one"]);
  await admin.deleteRule("topic-js", "one", "mine");
  await admin.deleteSubscription("topic-js", "one");
  await admin.deleteTopic("topic-js");
  assert.equal(await admin.topicExists("topic-js"), false);
});

promise("lists_go_over_many_pages", async () => {
  const names = Array.from({ length: 105 }, (_, number) => `page-js-${String(number).padStart(3, "0")}`);
  for (const name of names) await admin.createQueue(name);
  const listed = [];
  for await (const queue of admin.listQueues()) listed.push(queue.name);
  assert.deepEqual(listed.filter((name) => name.startsWith("page-js-")), names);
  assert.equal((await admin.getNamespaceProperties()).name, "localhost");
});

await play();
