// A message for which it is too early is deferred, and comes back by itself: `defer_for` in workflows/reminders.toml.
import { ServiceBusClient } from "@azure/service-bus";

const address = process.env.SERIATIM_AMQP ?? "127.0.0.1:5672";
const client = new ServiceBusClient(
  `Endpoint=sb://${address};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true`,
);

await client.createSender("reminders").sendMessages({ body: "pay order 18 when the bank opens" });

const receiver = client.createReceiver("reminders");
const [early] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
const begun = Date.now();
await receiver.deferMessage(early);

const [again] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
console.log(`again after ${Date.now() - begun} ms: ${again.body}`);
await receiver.completeMessage(again);
if (Date.now() - begun < 1_500) throw new Error("it came too early");
await client.close();
