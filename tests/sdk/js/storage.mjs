// Storage queues: queues, messages, and pop receipts.
import assert from "node:assert/strict";
import { QueueServiceClient, StorageSharedKeyCredential } from "@azure/storage-queue";
import { ACCOUNT, ACCOUNT_KEY, STORAGE_URL, pause, play, promise } from "./stage.mjs";

const service = new QueueServiceClient(STORAGE_URL, new StorageSharedKeyCredential(ACCOUNT, ACCOUNT_KEY), {
  retryOptions: { maxTries: 1 },
});

async function open(name) {
  const queue = service.getQueueClient(name);
  await queue.create();
  return queue;
}

promise("queues_are_made_listed_and_deleted", async () => {
  const queue = await open("made");
  assert.ok(await queue.exists());
  const names = [];
  for await (const { name } of service.listQueues({ prefix: "ma" })) names.push(name);
  assert.deepEqual(names, ["made"]);
  await queue.delete();
  assert.equal(await queue.exists(), false);
});

promise("metadata_is_kept", async () => {
  const queue = await open("told");
  await queue.setMetadata({ purpose: "tests" });
  const properties = await queue.getProperties();
  assert.deepEqual(properties.metadata, { purpose: "tests" });
  assert.equal(properties.approximateMessagesCount, 0);
});

promise("a_message_is_received_updated_and_deleted", async () => {
  const queue = await open("work");
  const sent = await queue.sendMessage("hello <&> you");
  const { receivedMessageItems } = await queue.receiveMessages({ visibilityTimeout: 30 });
  const [message] = receivedMessageItems;
  assert.equal(message.messageText, "hello <&> you");
  assert.equal(message.messageId, sent.messageId);
  assert.equal(message.dequeueCount, 1);
  const updated = await queue.updateMessage(message.messageId, message.popReceipt, "step 2", 0);
  await assert.rejects(queue.deleteMessage(message.messageId, message.popReceipt), { code: "PopReceiptMismatch" });
  const [again] = (await queue.receiveMessages()).receivedMessageItems;
  assert.equal(again.messageText, "step 2");
  assert.equal(again.dequeueCount, 2);
  assert.notEqual(again.popReceipt, updated.popReceipt);
  await queue.deleteMessage(again.messageId, again.popReceipt);
  await assert.rejects(queue.deleteMessage(again.messageId, again.popReceipt), { code: "MessageNotFound" });
});

promise("a_peek_takes_nothing", async () => {
  const queue = await open("peeked");
  await queue.sendMessage("a");
  const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
  assert.deepEqual(peekedMessageItems.map((message) => message.messageText), ["a"]);
  assert.equal(peekedMessageItems[0].dequeueCount, 0);
  assert.equal((await queue.receiveMessages()).receivedMessageItems.length, 1);
});

promise("a_message_that_is_not_settled_is_visible_again", async () => {
  const queue = await open("again");
  await queue.sendMessage("a");
  const [first] = (await queue.receiveMessages({ visibilityTimeout: 1 })).receivedMessageItems;
  assert.deepEqual((await queue.receiveMessages()).receivedMessageItems, []);
  await pause(1_200);
  const [second] = (await queue.receiveMessages()).receivedMessageItems;
  assert.equal(second.messageId, first.messageId);
  assert.equal(second.dequeueCount, 2);
});

promise("a_cleared_queue_is_empty", async () => {
  const queue = await open("cleared");
  await queue.sendMessage("a");
  await queue.clearMessages();
  assert.deepEqual((await queue.peekMessages()).peekedMessageItems, []);
});

await play();
