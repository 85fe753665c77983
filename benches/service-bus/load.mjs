// The client of `run.py`: rhea, the AMQP library below the SDK for JavaScript. Prints what it did as one line of JSON.
//
// Usage: node load.mjs PORT MODE COUNT   with MODE send, receive or crowd

import { createRequire } from "node:module";
import process from "node:process";

const rhea = createRequire(process.env.SDK_FOLDER + "/")("rhea");
const [port, mode, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const body = rhea.message.data_section(Buffer.alloc(200, "x"));
const CONNECTIONS = 500;
const SESSIONS = 1_000;
const EACH = 20;

function connect(container = rhea.create_container()) {
  return container.connect({ port, reconnect: false, max_frame_size: 65_536 });
}

function send() {
  return new Promise((resolve, reject) => {
    const sender = connect().open_sender("load");
    let [sent, settled] = [0, 0];
    sender.on("sendable", () => {
      while (sent < count && sender.sendable()) {
        sender.send({ message_id: String(sent), body });
        sent += 1;
      }
    });
    sender.on("rejected", (context) => reject(new Error(String(context.delivery.remote_state.error))));
    sender.on("accepted", () => {
      settled += 1;
      if (settled === count) {
        sender.connection.close();
        resolve({ sent });
      }
    });
  });
}

function receive() {
  return new Promise((resolve) => {
    const receiver = connect().open_receiver({ source: "load", credit_window: 1_000, autoaccept: true, rcv_settle_mode: 1 });
    let [received, settled] = [0, 0];
    receiver.on("message", () => (received += 1));
    receiver.on("settled", () => {
      settled += 1;
      if (settled === count) {
        receiver.connection.close();
        resolve({ received });
      }
    });
  });
}

// Every connection has two sessions: it sends to them and takes them, and each must come in order.
function crowd() {
  const containers = Array.from({ length: CONNECTIONS }, () => rhea.create_container());
  let wrong = 0;
  const one = (container, ids) =>
    new Promise((resolve, reject) => {
      const connection = connect(container);
      connection.on("connection_error", (context) => reject(context.connection.error));
      connection.on("disconnected", (context) => reject(context.error ?? new Error("cut off")));
      const sender = connection.open_sender("crowd");
      let [sent, left] = [0, ids.length * EACH];
      sender.on("sendable", () => {
        while (sent < ids.length * EACH && sender.sendable()) {
          const at = Math.floor(sent / ids.length);
          sender.send({ message_id: `${ids[sent % ids.length]}-${at}`, group_id: ids[sent % ids.length], body: at });
          sent += 1;
        }
      });
      for (const id of ids) {
        const filter = { "com.microsoft:session-filter": id };
        const receiver = connection.open_receiver({ source: { address: "crowd", filter }, credit_window: 10, rcv_settle_mode: 1 });
        let next = 0;
        receiver.on("message", (context) => {
          wrong += context.message.body === next ? 0 : 1;
          next += 1;
        });
        receiver.on("settled", () => {
          left -= 1;
          if (left === 0) {
            connection.removeAllListeners("disconnected");
            connection.close();
            resolve();
          }
        });
      }
    });
  const ids = (at) => Array.from({ length: SESSIONS / CONNECTIONS }, (_, index) => `s${at}-${index}`);
  return Promise.all(containers.map((container, at) => one(container, ids(at)))).then(() => ({
    connections: CONNECTIONS,
    sessions: SESSIONS,
    messages: SESSIONS * EACH,
    wrong,
  }));
}

const began = process.hrtime.bigint();
const done = await { send, receive, crowd }[mode]();
console.log(JSON.stringify({ ...done, seconds: Number(process.hrtime.bigint() - began) / 1e9 }));
process.exit(0);
