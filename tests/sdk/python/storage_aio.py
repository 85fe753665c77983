"""Storage queues with the asynchronous client: a worker that renews while it works."""
import asyncio

from azure.storage.queue.aio import QueueServiceClient

from stage import STORAGE, play, promise


@promise
async def workers_at_once_handle_each_message_once():
    async with QueueServiceClient.from_connection_string(STORAGE) as service:
        queue = await service.create_queue("shared")
        for number in range(30):
            await queue.send_message(str(number))
        handled = []

        async def work():
            while message := await queue.receive_message(visibility_timeout=30):
                handled.append(int(message.content))
                await queue.delete_message(message)

        await asyncio.gather(*[work() for _ in range(4)])
        assert sorted(handled) == list(range(30)), handled


@promise
async def a_worker_that_renews_keeps_its_message():
    async with QueueServiceClient.from_connection_string(STORAGE) as service:
        queue = await service.create_queue("renewed")
        await queue.send_message("a")
        message = await queue.receive_message(visibility_timeout=1)
        for _ in range(4):
            await asyncio.sleep(0.5)
            message = await queue.update_message(message, visibility_timeout=1)
            assert await queue.receive_message() is None
        await queue.delete_message(message)
        assert (await queue.get_queue_properties()).approximate_message_count == 0


play()
