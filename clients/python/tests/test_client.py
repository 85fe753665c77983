"""What the client promises, towards a real daemon."""

import asyncio
import datetime
import inspect
import unittest

from seriatim import (
    AsyncClient,
    AsyncDelivery,
    AsyncQueue,
    AsyncRun,
    AsyncWorkflow,
    Client,
    Delivery,
    LockLost,
    Message,
    NotFound,
    PlaceTaken,
    Queue,
    Refused,
    Run,
    Unreachable,
    Workflow,
)
from seriatim.testing import DevDaemon


class OfTheClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = DevDaemon()
        cls.client = cls.daemon.client()

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.daemon.stop()

    def queue(self, **options):
        queue = self.client.queue(self.id().rsplit(".", 1)[-1])
        queue.create(**options)
        return queue

    def one(self, queue, **options):
        [delivery] = queue.receive(wait=5, **options)
        return delivery

    def test_messages_come_in_the_order_of_their_positions(self):
        queue = self.queue(order="position")
        queue.send("second", workflow="w", position=2)
        self.assertEqual(queue.receive(), [])
        queue.send("first", workflow="w", position=1)
        for text in ["first", "second"]:
            delivery = self.one(queue)
            self.assertEqual(delivery.text, text)
            self.assertEqual(queue.receive(), [], "one at a time")
            delivery.complete()

    def test_every_kind_of_body_and_property_survives(self):
        queue = self.queue()
        for body, read in [(b"\0\xff", b"\0\xff"), ("häh", "häh".encode()), ({"a": [1, None]}, b'{"a":[1,null]}')]:
            queue.send(body, workflow="w", subject="s", id=f"{read}", properties={"text": "ü", "number": 7, "bytes": b"\xff"})
            delivery = self.one(queue)
            self.assertEqual(delivery.body, read)
            self.assertEqual(delivery.properties, {"text": "ü", "number": 7, "bytes": b"\xff"})
            self.assertEqual((delivery.workflow, delivery.subject, delivery.delivery_count), ("w", "s", 1))
            delivery.complete()

    def test_a_raw_body_of_json_has_each_byte_that_was_sent(self):
        queue, text = self.queue(), '{\n "a": 1.10, "a": 9007199254740993\n}'
        for number in range(3):
            queue.send(text, workflow=str(number), content_type="application/json")
        self.assertNotEqual(self.one(queue).text, text, "without the word it is a value")
        [delivery] = queue.receive(raw=True)
        self.assertEqual((delivery.text, delivery.json()), (text, {"a": 9007199254740993}))
        delivery.defer()
        [delivery] = queue.receive_deferred([delivery.sequence_number], raw=True)
        self.assertEqual(delivery.text, text)
        [message] = queue.receive_run(raw=True)
        self.assertEqual(message.text, text)

    def test_a_batch_is_accepted_whole_or_not_at_all(self):
        queue = self.queue(order="position")
        messages = [Message("a", workflow="w", position=1), Message("b", workflow="w", position=1)]
        with self.assertRaises(Refused):
            queue.send_batch(messages)
        self.assertEqual(queue.view()["counts"]["stored"], 0)
        with self.assertRaises(ValueError):
            queue.send_batch([])

    def test_state_and_messages_are_one_transaction_with_a_completion(self):
        queue, other = self.queue(), self.client.queue("other-of-state")
        other.create()
        queue.send_batch([Message(workflow="w"), Message(workflow="w")])
        receipts = self.one(queue).complete(state={"seen": 1}, send=[("other-of-state", Message("sent", workflow="x"))])
        self.assertEqual([receipt.status for receipt in receipts], ["accepted"])
        delivery = self.one(queue, state=True)
        self.assertEqual(delivery.state, {"seen": 1})
        delivery.complete(state=None)
        self.assertEqual(self.one(other).text, "sent")

    def test_a_failed_message_keeps_its_place(self):
        queue = self.queue()
        queue.send_batch([Message("a", workflow="w"), Message("b", workflow="w")])
        self.one(queue).abandon(delay=0, reason="busy")
        delivery = self.one(queue)
        self.assertEqual((delivery.text, delivery.delivery_count), ("a", 2))
        delivery.dead_letter("bad", "very bad")
        self.assertEqual(self.one(queue).text, "b")
        [dead] = queue.dead_letters()["dead_letters"]
        self.assertEqual((dead["reason"], dead["description"]), ("bad", "very bad"))

    def test_what_is_deferred_is_received_by_its_number(self):
        queue = self.queue()
        number = queue.send("later", workflow="w").sequence_number
        self.one(queue).defer()
        self.assertEqual(queue.receive(), [])
        [delivery] = queue.receive_deferred([number])
        delivery.complete()

    def test_a_released_message_is_not_counted_and_a_settled_one_is_lost(self):
        queue = self.queue()
        queue.send("a", workflow="w")
        first = self.one(queue)
        first.release()
        second = self.one(queue)
        self.assertEqual(second.delivery_count, 1)
        second.renew()
        with self.assertRaises(Refused):
            first.renew()
        second.complete()
        second.complete()  # asked again, it is answered as it was

    def test_a_run_is_settled_from_its_first_message_on(self):
        queue = self.queue()
        queue.send_batch([Message(str(n), workflow="w") for n in range(3)])
        run = queue.receive_run(max=10, wait=5)
        self.assertEqual([message.text for message in run], ["0", "1", "2"])
        run.settle(completed=2)
        self.assertEqual(self.one(queue).text, "2")

    def test_a_run_is_renewed_and_keeps_state_messages_and_a_retry_in_one_transaction(self):
        queue, other = self.queue(delivery={"lock": "90s"}), self.client.queue("beside")
        other.create()
        queue.send_batch([Message(str(n), workflow="w") for n in range(4)])
        run = queue.receive_run(max=3, wait=5)
        queue.create(delivery={"lock": "1h"})
        self.assertEqual(run.lock_seconds, 90)
        until = run.locked_until
        run.renew()
        self.assertEqual((run.lock_seconds, run.locked_until > until), (3600, True))
        run.settle(1, {"verb": "abandon", "retry_after": 0}, state={"seen": 1}, send=[(other.name, Message("sent", workflow="x"))])
        again = self.one(queue, state=True)
        self.assertEqual((again.text, again.delivery_count, again.state), ("1", 2, {"seen": 1}))
        self.assertEqual(self.one(other).text, "sent")
        again.complete()
        run = queue.receive_run()
        run.settle(state=None)
        self.assertEqual((len(run), queue.workflow("w").state()), (2, None))

    def test_each_message_of_a_run_has_the_state_of_its_workflow(self):
        queue = self.queue()
        queue.send("first", workflow="w")
        self.one(queue).complete(state={"seen": 1})
        queue.send_batch([Message(str(n), workflow="w") for n in range(3)])
        run = queue.receive_run(max=10, wait=5, state=True)
        self.assertEqual([message.state for message in run], [{"seen": 1}] * 3)

    def test_scheduled_messages_are_moved_and_cancelled(self):
        queue = self.queue()
        at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        number = queue.send("later", workflow="w", schedule_at=at).sequence_number
        queue.reschedule(number, at - datetime.timedelta(hours=2))
        self.one(queue).complete()
        number = queue.send("never", workflow="w", schedule_at=at).sequence_number
        queue.cancel(number)
        self.assertEqual(queue.view()["counts"]["scheduled"], 0)

    def test_an_operator_holds_skips_and_resumes(self):
        queue = self.queue()
        queue.send_batch([Message("a", workflow="w"), Message("b", workflow="w")])
        workflow = queue.workflow("w")
        workflow.hold(reason="look first", dry_run=True)
        self.assertEqual(len(queue.blocked()), 0)
        workflow.hold(reason="look first")
        self.assertEqual([row["workflow_id"] for row in queue.blocked()], ["w"])
        seen = workflow.skip("unwanted", dry_run=True)["sequence_number"]
        workflow.skip("unwanted", sequence_number=seen)
        with self.assertRaises(Refused):
            workflow.skip("unwanted", sequence_number=seen)
        workflow.resume()
        self.assertEqual(self.one(queue).text, "b")
        self.assertEqual(workflow.view()["workflow_id"], "w")

    def test_each_verb_of_operators_takes_a_reason_and_a_hold_is_resumed_by_its_cause(self):
        queue = self.queue()
        queue.send("a", workflow="w")
        workflow = queue.workflow("w")
        workflow.hold(reason="look first")
        with self.assertRaises(Refused):
            workflow.resume(cause="gap")
        workflow.resume(cause="operator", reason="looked")
        delivery = self.one(queue)
        workflow.release_lock(reason="it hangs")
        with self.assertRaises(LockLost):
            delivery.complete()
        self.one(queue).abandon(delay=3600)
        workflow.retry(reason="mended")
        self.assertEqual(self.one(queue).text, "a")

    def test_all_workflows_that_do_not_go_on_are_listed(self):
        queue = self.queue()
        for number in range(101):
            queue.workflow(str(number)).hold()
        self.assertEqual(len(queue.blocked()), 101)
        self.assertEqual(sum(row["queue"] == queue.name for row in self.client.blocked()), 101)

        async def count():
            async with AsyncClient(self.daemon.url) as client:
                rows = await client.blocked()
                return len(await client.queue(queue.name).blocked()), sum(row["queue"] == queue.name for row in rows)

        self.assertEqual(asyncio.run(count()), (101, 101))

    def test_refusals_are_exceptions_with_a_code(self):
        with self.assertRaises(NotFound) as raised:
            self.client.queue("absent").view()
        self.assertEqual(raised.exception.code, "queue_not_found")
        queue = self.queue(order="position")
        queue.send("x", workflow="w", position=1, id="a")
        with self.assertRaises(PlaceTaken):
            queue.send("y", workflow="w", position=1, id="b")

    def test_a_lost_lock_cannot_complete(self):
        queue = self.queue(delivery={"lock": "1s"})
        queue.send("x", workflow="w")
        first = self.one(queue)
        [second] = queue.receive(wait=20)
        with self.assertRaises(LockLost):
            first.complete()
        second.complete()

    def test_a_delivery_says_how_long_its_lock_lasts(self):
        queue = self.queue(delivery={"lock": "90s"})
        queue.send("x", workflow="w")
        delivery = self.one(queue)
        self.assertEqual(delivery.lock_seconds, 90)
        queue.create(delivery={"lock": "2m"})
        delivery.renew(timeout=20)
        self.assertEqual(delivery.lock_seconds, 120)

    def test_nobody_there_is_said_with_how_to_start_it(self):
        with self.assertRaises(Unreachable) as raised:
            Client("http://127.0.0.1:1", retry_for=0).status()
        self.assertIn("`seriatim run` starts it", str(raised.exception))
        with self.assertRaises(ValueError):
            Client("localhost:7700")

    def test_the_client_for_asyncio_does_the_same(self):
        name = self.id().rsplit(".", 1)[-1]

        async def story():
            async with AsyncClient(self.daemon.url) as client:
                queue = client.queue(name)
                await queue.create(order="position")
                await asyncio.gather(*(queue.send({"n": n}, workflow="w", position=n) for n in range(9, 0, -1)))
                seen = []
                while deliveries := await queue.receive(wait=0.2, state=True):
                    seen.append(deliveries[0].json()["n"])
                    await deliveries[0].complete(state=seen)
                self.assertEqual(seen, list(range(1, 10)))
                self.assertEqual(await queue.workflow("w").state(), seen)
                await queue.send_batch([Message(f"{n}", workflow="w", position=n) for n in (10, 11)])
                run = await queue.receive_run(wait=5)
                self.assertEqual([message.text for message in run], ["10", "11"])
                await run.renew()
                await run.settle(completed=1, next={"verb": "dead_letter", "reason": "bad"})
                [dead] = (await queue.dead_letters())["dead_letters"]
                self.assertEqual(dead["reason"], "bad")
                self.assertEqual((await queue.redrive_many(all=True))["matched"], 1)
                workflow = queue.workflow("w")
                await workflow.hold(reason="look first")
                with self.assertRaises(Refused):
                    await workflow.resume(cause="gap", reason="no gap")
                await workflow.resume(cause="operator", reason="looked")
                self.assertIn(name, [row["name"] for row in await client.queues()])
                with self.assertRaises(NotFound):
                    await client.queue("absent").view()
                self.assertEqual(await queue.blocked(), [])
                await queue.delete()
                with self.assertRaises(NotFound):
                    await queue.view()

        asyncio.run(story())


def offered(kind):
    """What a class offers by name, and what each function of it takes."""
    functions = {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}
    return {name: list(inspect.signature(value).parameters) if callable(value) else None for name, value in functions.items()}


class OfBothClients(unittest.TestCase):
    def test_the_client_for_asyncio_offers_all_that_the_other_does(self):
        pairs = [(Client, AsyncClient), (Queue, AsyncQueue), (Delivery, AsyncDelivery), (Run, AsyncRun), (Workflow, AsyncWorkflow)]
        for one, other in pairs:
            with self.subTest(one.__name__):
                offers = offered(other)
                self.assertEqual({name: offers.get(name, "nothing") for name in offered(one)}, offered(one))


if __name__ == "__main__":
    unittest.main()
