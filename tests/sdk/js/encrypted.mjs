// Every way to the port of AMQP: in TLS, over WebSockets in TLS, and plain beside them.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import WebSocket from "ws";
import { SERVICE_BUS, play, promise } from "./stage.mjs";

// NODE_EXTRA_CA_CERTS names the certificate of the daemon.
const PORT = process.env.SERIATIM_AMQP.split(":").pop();
const ENCRYPTED =
  `Endpoint=sb://localhost:${PORT};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0`;
const LARGE = Buffer.alloc(900_000, "x");

async function thereAndBack(queue, connection, options = {}) {
  const client = new ServiceBusClient(connection, { retryOptions: { maxRetries: 0 }, ...options });
  const sender = client.createSender(queue);
  await sender.sendMessages([{ body: "a" }, { body: "b" }]);
  await sender.sendMessages({ body: LARGE });
  const receiver = client.createReceiver(queue);
  const bodies = [];
  while (bodies.length < 3) {
    const messages = await receiver.receiveMessages(3, { maxWaitTimeInMs: 10_000 });
    assert.notEqual(messages.length, 0, `${bodies.length} came`);
    for (const message of messages) {
      bodies.push(message.body);
      await receiver.completeMessage(message);
    }
  }
  assert.deepEqual(bodies.slice(0, 2), ["a", "b"]);
  assert.ok(LARGE.equals(bodies[2]), "the large one is whole");
  await client.close();
}

promise("messages_go_over_amqp_in_tls", () => thereAndBack("queue-1", ENCRYPTED));

promise("messages_go_over_a_websocket_in_tls", () =>
  thereAndBack("queue-2", ENCRYPTED, { webSocketOptions: { webSocket: WebSocket } }),
);

promise("the_port_takes_amqp_without_tls_beside_it", () => thereAndBack("queue-3", SERVICE_BUS));

await play();
