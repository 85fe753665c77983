// Descriptions as the administration client gives and gets them, field by field, with what is told where nothing was said.
import assert from "node:assert/strict";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";
import { SERVICE_BUS, play, promise as declare } from "./stage.mjs";

const PORT = process.env.SERIATIM_AMQP.split(":").pop();
const HOST = `sb://localhost:${PORT}/`;
const CONNECTION = `Endpoint=${HOST};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0`;
let admin;

/** Declares a promise that is kept with each version of the API, and takes away what was made for it. */
function promise(name, keep) {
  declare(name, async () => {
    for (const serviceVersion of ["2021-05", "2017-04"]) {
      admin = new ServiceBusAdministrationClient(CONNECTION, { serviceVersion, retryOptions: { maxRetries: 0 } });
      await keep();
      for await (const { name } of admin.listQueues()) if (name.includes("-js")) await admin.deleteQueue(name);
      for await (const { name } of admin.listTopics()) if (name.includes("-js")) await admin.deleteTopic(name);
    }
  });
}
const FOREVER = "P10675199DT2H48M5.4775807S";
const rule = (keyName, accessRights) => ({
  claimType: "SharedAccessKey", accessRights, keyName, primaryKey: "cHJpbWFyeQ==", secondaryKey: "c2Vjb25k",
});

/** Compares every field that is expected, and finds none of those that are not to be there. */
function check(found, expected) {
  for (const [name, value] of Object.entries(expected)) assert.deepEqual(found[name], value, `${name} of ${found.name}`);
}

const OF_ALL = {
  defaultMessageTimeToLive: FOREVER, autoDeleteOnIdle: FOREVER, enableBatchedOperations: true, status: "Active",
  userMetadata: undefined, availabilityStatus: "Available",
};
const OF_STORED = {
  lockDuration: "PT1M", maxDeliveryCount: 10, requiresSession: false, deadLetteringOnMessageExpiration: false,
  forwardTo: undefined, forwardDeadLetteredMessagesTo: undefined,
};
const OF_NAMED = {
  duplicateDetectionHistoryTimeWindow: "PT10M", requiresDuplicateDetection: false, enablePartitioning: false,
  enableExpress: false, maxSizeInMegabytes: 1024, authorizationRules: undefined,
};

promise("what_nobody_said_is_told_as_service_bus_tells_it", async () => {
  check(await admin.createQueue("plain-js"), { name: "plain-js", ...OF_ALL, ...OF_STORED, ...OF_NAMED });
  check(await admin.createTopic("plain-topic-js"), { name: "plain-topic-js", ...OF_ALL, ...OF_NAMED, supportOrdering: true });
  check(await admin.createSubscription("plain-topic-js", "s"), {
    topicName: "plain-topic-js", subscriptionName: "s", ...OF_ALL, ...OF_STORED,
    deadLetteringOnFilterEvaluationExceptions: true,
  });
  check(await admin.getQueueRuntimeProperties("plain-js"), {
    name: "plain-js", sizeInBytes: 0, totalMessageCount: 0, activeMessageCount: 0, deadLetterMessageCount: 0,
    scheduledMessageCount: 0, transferMessageCount: 0, transferDeadLetterMessageCount: 0,
  });
  check(await admin.getNamespaceProperties(), { name: "localhost", messagingSku: "Standard", messagingUnits: undefined });
  check(await admin.getTopicRuntimeProperties("plain-topic-js"), {
    name: "plain-topic-js", sizeInBytes: 0, subscriptionCount: 1, scheduledMessageCount: 0,
  });
  check(await admin.getSubscriptionRuntimeProperties("plain-topic-js", "s"), {
    topicName: "plain-topic-js", subscriptionName: "s", totalMessageCount: 0, activeMessageCount: 0,
    deadLetterMessageCount: 0, transferMessageCount: 0, transferDeadLetterMessageCount: 0,
  });
});

promise("every_field_is_told_as_it_was_made_and_as_it_was_changed", async () => {
  const queue = {
    lockDuration: "PT45S", requiresDuplicateDetection: true, requiresSession: true, defaultMessageTimeToLive: "P2D",
    deadLetteringOnMessageExpiration: true, duplicateDetectionHistoryTimeWindow: "PT1M", maxDeliveryCount: 8,
    enableBatchedOperations: false, autoDeleteOnIdle: "PT1H", enablePartitioning: true, enableExpress: false,
    authorizationRules: [rule("one", ["Manage", "Send", "Listen"]), rule("two", ["Manage", "Send", "Listen"])],
    userMetadata: "test metadata", status: "ReceiveDisabled",
  };
  const made = await admin.createQueue("every-js", queue);
  check(made, queue);
  const later = {
    lockDuration: "PT50S", defaultMessageTimeToLive: "P1D", duplicateDetectionHistoryTimeWindow: "PT2M",
    maxDeliveryCount: 5, autoDeleteOnIdle: "PT2H", authorizationRules: [rule("one", ["Send"]), rule("two", ["Listen"])],
  };
  check(await admin.updateQueue({ ...made, ...later }), { ...queue, ...later });

  const topic = {
    requiresDuplicateDetection: true, defaultMessageTimeToLive: "P2D", duplicateDetectionHistoryTimeWindow: "PT1M",
    enableBatchedOperations: false, status: "SendDisabled", enablePartitioning: true, enableExpress: false,
    supportOrdering: false, userMetadata: "test metadata", autoDeleteOnIdle: FOREVER,
  };
  check(await admin.createTopic("every-topic-js", topic), topic);
  const other = {
    status: "SendDisabled", userMetadata: "test metadata", defaultMessageTimeToLive: "P1D", autoDeleteOnIdle: "PT2H",
    duplicateDetectionHistoryTimeWindow: "PT2M", supportOrdering: true, maxSizeInMegabytes: 3072,
  };
  check(await admin.updateTopic({ ...(await admin.createTopic("other-topic-js")), ...other }), {
    ...other, requiresDuplicateDetection: false, enableBatchedOperations: true,
  });

  await admin.createTopic("subscribed-js");
  const subscription = {
    lockDuration: "PT5M", maxDeliveryCount: 20, defaultMessageTimeToLive: "P2D", autoDeleteOnIdle: "PT1H",
    deadLetteringOnFilterEvaluationExceptions: false, deadLetteringOnMessageExpiration: true,
    enableBatchedOperations: false, requiresSession: true, userMetadata: "test metadata", status: "ReceiveDisabled",
  };
  check(await admin.createSubscription("subscribed-js", "every", subscription), subscription);
  const defaultRuleOptions = {
    name: "rule", action: { sqlExpression: "SET a='b'", sqlParameters: undefined },
    filter: { sqlExpression: "s = @s AND i = @i", sqlParameters: { "@i": 1, "@s": "b" } },
  };
  const ruled = await admin.createSubscription("subscribed-js", "ruled", { ...subscription, defaultRuleOptions });
  check(ruled, subscription);
  check(await admin.getRule("subscribed-js", "ruled", "rule"), defaultRuleOptions);
  const change = { lockDuration: "PT3M", maxDeliveryCount: 10, defaultMessageTimeToLive: "P1D" };
  check(await admin.updateSubscription({ ...ruled, ...change }), { ...subscription, ...change });
});

promise("an_entity_is_forwarded_to_by_its_name_and_by_its_address_in_any_case", async () => {
  await admin.createQueue("onward-js");
  await admin.createTopic("from-js");
  for (const [number, [said, told]] of [
    ["onward-js", `${HOST}onward-js`], [`${HOST}onward-js`, `${HOST}onward-js`],
    [`${HOST}onward-js`.toUpperCase(), `${HOST}ONWARD-JS`],
  ].entries()) {
    const forwards = { forwardTo: said, forwardDeadLetteredMessagesTo: said };
    const expected = { forwardTo: told, forwardDeadLetteredMessagesTo: told };
    check(await admin.createQueue(`way-js-${number}`, forwards), expected);
    check(await admin.createSubscription("from-js", `way-${number}`, forwards), expected);
    check(await admin.updateQueue({ ...(await admin.createQueue(`changed-js-${number}`)), ...forwards }), expected);
    const subscription = await admin.createSubscription("from-js", `changed-${number}`);
    check(await admin.updateSubscription({ ...subscription, ...forwards }), expected);
  }
});

promise("what_is_told_to_forward_later_forwards_then", async () => {
  await admin.createQueue("goal-js");
  const way = await admin.createQueue("way-js");
  await admin.createTopic("way-topic-js");
  const subscription = await admin.createSubscription("way-topic-js", "s");
  await admin.updateQueue({ ...way, forwardTo: "goal-js" });
  await admin.updateSubscription({ ...subscription, forwardTo: "goal-js" });
  const client = new ServiceBusClient(SERVICE_BUS, { retryOptions: { maxRetries: 0 } });
  const receiver = client.createReceiver("goal-js", { receiveMode: "receiveAndDelete" });
  for (const from of ["way-js", "way-topic-js"]) {
    await client.createSender(from).sendMessages({ body: from });
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
    assert.equal(message.body, from);
  }
  await client.close();
});

promise("a_rule_is_told_with_every_type_of_value", async () => {
  await admin.createTopic("rules-js");
  await admin.createSubscription("rules-js", "s");
  const applicationProperties = {
    state: "WA", int: 25, disguised: 3.0, double: 12.4, bool: true, date: new Date("2026-01-31T12:34:56.789Z"),
  };
  const filter = { correlationId: "abcd", applicationProperties };
  const action = { sqlExpression: "SET sys.label='GREEN'", sqlParameters: undefined };
  const made = await admin.createRule("rules-js", "s", "many", filter, action);
  for (const found of [made, await admin.getRule("rules-js", "s", "many")]) {
    check(found.filter, { ...filter, subject: undefined, sessionId: undefined });
    check(found, { name: "many", action });
  }
  const changed = { ...made, filter: { sqlExpression: "a = @a", sqlParameters: { "@a": new Date(0) } } };
  assert.deepEqual((await admin.updateRule("rules-js", "s", changed)).filter, changed.filter);
});

promise("lists_are_gone_through_by_page_and_from_where_one_ended", async () => {
  await admin.createTopic("pages-js");
  await admin.createSubscription("pages-js", "sub-0");
  for (let number = 0; number < 5; number++) {
    await admin.createQueue(`pages-js-queue-${number}`);
    await admin.createTopic(`pages-js-topic-${number}`);
    if (number > 0) await admin.createSubscription("pages-js", `sub-${number}`);
    await admin.createRule("pages-js", "sub-0", `rule-${number}`, { sqlExpression: "1=1" });
  }
  for (const [list, start] of [
    [() => admin.listQueues(), "pages-js-queue-"], [() => admin.listQueuesRuntimeProperties(), "pages-js-queue-"],
    [() => admin.listTopics(), "pages-js-topic-"], [() => admin.listTopicsRuntimeProperties(), "pages-js-topic-"],
    [() => admin.listSubscriptions("pages-js"), "sub-"],
    [() => admin.listSubscriptionsRuntimeProperties("pages-js"), "sub-"],
    [() => admin.listRules("pages-js", "sub-0"), "rule-"],
  ]) {
    const names = (entities) => entities.map((one) => one.subscriptionName ?? one.name).filter((name) => name.startsWith(start));
    const expected = Array.from({ length: 5 }, (_, number) => `${start}${number}`);
    const all = [], paged = [];
    for await (const entity of list()) all.push(...names([entity]));
    for await (const page of list().byPage({ maxPageSize: 2 })) {
      assert.ok(page.length <= 2);
      paged.push(...names(page));
    }
    assert.deepEqual([all, paged], [expected, expected]);
    const first = (await list().byPage({ maxPageSize: 2 }).next()).value;
    const rest = names(first);
    for await (const page of list().byPage({ maxPageSize: 5, continuationToken: first.continuationToken })) {
      rest.push(...names(page));
    }
    assert.deepEqual(rest, expected);
  }
});

promise("what_is_there_and_what_is_not_is_known_by_existence_and_by_code", async () => {
  await admin.createTopic("there-js");
  await admin.createSubscription("there-js", "s");
  await admin.createRule("there-js", "s", "r", { sqlExpression: "1=2" });
  const queue = await admin.createQueue("there-queue-js");
  assert.deepEqual([
    await admin.queueExists("there-queue-js"), await admin.topicExists("there-js"),
    await admin.subscriptionExists("there-js", "s"), await admin.ruleExists("there-js", "s", "r"),
    await admin.queueExists("none-js"), await admin.topicExists("none-js"),
    await admin.subscriptionExists("there-js", "none"), await admin.ruleExists("there-js", "s", "none"),
  ], [true, true, true, true, false, false, false, false]);
  const exists = { code: "MessageEntityAlreadyExistsError", statusCode: 409 };
  await assert.rejects(admin.createQueue("there-queue-js"), exists);
  await assert.rejects(admin.createTopic("there-js"), exists);
  await assert.rejects(admin.createSubscription("there-js", "s"), exists);
  await assert.rejects(admin.createRule("there-js", "s", "r", { sqlExpression: "1=2" }), exists);
  const gone = { code: "MessageEntityNotFoundError" };
  await assert.rejects(admin.updateQueue({ ...queue, name: "none-js" }), gone);
  await assert.rejects(admin.updateTopic({ ...(await admin.getTopic("there-js")), name: "none-js" }), gone);
  const subscription = await admin.getSubscription("there-js", "s");
  await assert.rejects(admin.updateSubscription({ ...subscription, subscriptionName: "none" }), gone);
  await assert.rejects(admin.updateRule("there-js", "s", { ...(await admin.getRule("there-js", "s", "r")), name: "none" }), gone);
  for (const call of [
    () => admin.getQueue("none-js"), () => admin.getTopic("none-js"), () => admin.getSubscription("there-js", "none"),
    () => admin.getRule("there-js", "s", "none"), () => admin.deleteQueue("none-js"), () => admin.deleteTopic("none-js"),
    () => admin.deleteSubscription("there-js", "none"), () => admin.deleteRule("there-js", "s", "none"),
  ]) await assert.rejects(call(), gone);
  await admin.deleteRule("there-js", "s", "r");
  await admin.deleteSubscription("there-js", "s");
  await admin.deleteTopic("there-js");
  await admin.deleteQueue("there-queue-js");
  assert.deepEqual([await admin.topicExists("there-js"), await admin.queueExists("there-queue-js")], [false, false]);
});

await play();
