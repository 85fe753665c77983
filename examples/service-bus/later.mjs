// A message for which it is too early: it comes back by itself, and nothing else is needed.
import { ServiceBusClient } from "@azure/service-bus";

const address = process.env.SERIATIM_AMQP ?? "127.0.0.1:5672";
const client = new ServiceBusClient(
  `Endpoint=sb://${address};SharedAccessKeyName=any;SharedAccessKey=any;UseDevelopmentEmulator=true`,
);

await client.createSender("payments").sendMessages({ body: "pay order 18 when the bank opens" });

const receiver = client.createReceiver("payments");
const [early] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
const begun = Date.now();
await receiver.abandonMessage(early, { "seriatim-retry-after": "1500ms" });

const [again] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
console.log(`again after ${Date.now() - begun} ms: ${again.body}`);
await receiver.completeMessage(again);
if (Date.now() - begun < 1_500) throw new Error("it came too early");
await client.close();
