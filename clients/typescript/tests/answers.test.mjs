// What the client makes of answers, towards a server that gives those of a list.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { Client, NotFound, Refused, Unauthorized, Unavailable, Unreachable } from "../dist/index.js";

// What is answered where it is not known what was done: by a node of a cluster, by a proxy, by one that says nothing, and by a daemon
// whose engine has stopped.
const unanswered = JSON.stringify({ status: 504, code: "unanswered", detail: "no answer came" });
const stopped = JSON.stringify({ status: 503, code: "stopped", detail: "the engine has stopped" });
const NOT_KNOWN = [[504, unanswered], [502, "<h1>Bad Gateway</h1>"], [502, '{"code": 14}'], [504, ""], [503, stopped]];

// A story with a client of a server that answers each request with the next of the list, and then with the last again; it is told
// the requests.
async function answering(answers, story) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push(request);
    const [status, body, headers] = answers.length > 1 ? answers.shift() : answers[0];
    request.resume().on("end", () => response.writeHead(status, headers ?? {}).end(body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    await story(new Client({ url: `http://127.0.0.1:${server.address().port}` }), asked);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("what is not known is asked again under the same key", async () => {
  const receipt = [201, JSON.stringify({ status: "accepted", sequence_number: 7 })];
  for (const answer of [...NOT_KNOWN, [503, "no server is there"]]) {
    await answering([answer, receipt], async (client, asked) => {
      assert.equal((await client.queue("orders").send("x")).sequenceNumber, 7);
      const keys = asked.map(({ headers }) => headers["idempotency-key"]);
      assert.deepEqual([keys.length, keys[0]], [2, keys[1]]);
    });
  }
});

test("what may not be asked again is said to be not known", async () => {
  const receives = (expected) => (client) => assert.rejects(client.queue("orders").receive(), expected);
  for (const answer of NOT_KNOWN) await answering([answer], receives(Unreachable));
  await answering([[503, "no server is there"]], receives(Unavailable));
});

test("who is sent elsewhere does not take the answer from there for its own", async () => {
  const elsewhere = [302, "", { location: "/login" }];
  await answering([elsewhere, [200, "{}"]], async (client, asked) => {
    await assert.rejects(client.queue("orders").cancel(1), Refused);
    assert.equal(asked.length, 1);
  });
});

test("what somebody between answers is an error of its kind", async () => {
  const answers = [
    [308, "", Refused],
    [401, "<html>", Unauthorized],
    [403, '{"status": "error"}', Unauthorized],
    [404, "", NotFound],
    [413, "<html>", Refused],
    [429, "null", Unavailable],
    [500, "<html>", Unreachable],
  ];
  for (const [status, body, kind] of answers) {
    await answering([[status, body]], async (client) => {
      const isOfKind = (error) => error instanceof kind && error.message.includes(`http_${status}`);
      await assert.rejects(client.queue("orders").cancel(1), isOfKind, `${status}`);
    });
  }
});

test("a key that was read with its line is that key", async () => {
  await answering([[200, "{}"]], async ({ url }, asked) => {
    await new Client({ url, key: " secret\n" }).status();
    assert.equal(asked[0].headers["authorization"], "Bearer secret");
    for (const key of ["a\r\nX: b", "a\0", "\u00e9"]) assert.throws(() => new Client({ url, key }), TypeError);
  });
});

test("a sequence number that JavaScript rounds names no other message", async () => {
  const lock = { locked_until: "2030-01-01T00:00:00Z", lock_ms: 30_000 };
  const delivery = JSON.stringify({ delivery: "d", queue: "orders", delivery_count: 1, ...lock });
  // 2^53 + 1, of which JavaScript makes 2^53.
  const number = `"sequence_number":9007199254740993`;
  const answers = [`{"deliveries":[${delivery.slice(0, -1)},${number}}]}`, `{"status":"accepted",${number}}`, "{}"];
  await answering(answers.map((answer) => [200, answer]), async (client, asked) => {
    const orders = client.queue("orders");
    const [received] = await orders.receive();
    assert.throws(() => received.sequenceNumber, RangeError);
    assert.deepEqual(await orders.send("x"), { status: "accepted" });
    await received.complete();
    const rounded = received.envelope.sequence_number;
    await assert.rejects(orders.cancel(rounded), RangeError);
    await assert.rejects(orders.receiveDeferred([rounded]), RangeError);
    assert.equal(asked.length, 3);
  });
});

test("the settlement of a run is asked again", async () => {
  const deliveries = [{ queue: "orders", sequence_number: 1, delivery_count: 1 }];
  const answers = [[200, JSON.stringify({ run: "r", deliveries })], NOT_KNOWN[0], [200, ""]];
  await answering(answers, async (client, asked) => {
    await (await client.queue("orders").receiveRun()).settle();
    assert.deepEqual(asked.map(({ url }) => url.split("/").at(-1)), ["receive", "settle", "settle"]);
  });
});

test("pages of what does not go on are followed to the last", async () => {
  const pages = [{ blocked: [1], after: "a/w" }, { blocked: [], after: "b/" }, { blocked: [2] }];
  await answering(pages.map((page) => [200, JSON.stringify(page)]), async (client, asked) => {
    assert.deepEqual(await client.queue("orders").blocked(), [1, 2]);
    const expected = ["", "&after=a%2Fw", "&after=b%2F"].map((after) => `/v1/blocked?queue=orders&limit=1000${after}`);
    assert.deepEqual(asked.map(({ url }) => url), expected);
  });
});
