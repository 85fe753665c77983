"""A daemon with keys: every request is signed, and each key does what its file says."""
import os

from azure.core.exceptions import HttpResponseError
from azure.storage.queue import QueueServiceClient

from stage import play, promise

URL = f"http://{os.environ['SERIATIM_STORAGE_QUEUE']}"


def service(name, key=None):
    credential = {"account_name": name, "account_key": key or os.environ["SERIATIM_SECRET"]}
    return QueueServiceClient(f"{URL}/{name}", credential=credential, retry_total=0)


def refused_with(code, call, *arguments):
    try:
        call(*arguments)
    except HttpResponseError as error:
        assert error.error_code == code, (error.error_code, code)
        return
    raise AssertionError(f"it was not refused with {code}")


@promise
def the_key_of_an_account_does_everything():
    queue = service("everything").create_queue("closed")
    queue.send_message("a b/c?d=e&f")
    message = queue.receive_message()
    queue.delete_message(queue.update_message(message, visibility_timeout=10, content="\u00fc"))
    assert [found.name for found in service("everything").list_queues(name_starts_with="clo")] == ["closed"]


@promise
def a_key_does_no_more_than_its_rights():
    service("everything").create_queue("open-door")
    sender = service("sender", os.environ["SERIATIM_SENDER_SECRET"])
    sender.get_queue_client("open-door").send_message("a")
    refused_with("AuthorizationFailure", sender.get_queue_client("open-door").receive_message)
    refused_with("AuthorizationFailure", sender.get_queue_client("closed").send_message, "a")
    refused_with("AuthorizationFailure", lambda: list(sender.list_queues()))
    receiver = service("receiver", os.environ["SERIATIM_RECEIVER_SECRET"])
    assert [found.name for found in receiver.list_queues()] == ["open-door"]


@promise
def without_the_right_key_nothing_is_done():
    refused_with("AuthenticationFailed", service("everything", "d3Jvbmc=").get_queue_client("closed").receive_message)
    refused_with("AuthenticationFailed", service("nobody").get_queue_client("closed").receive_message)


play()
