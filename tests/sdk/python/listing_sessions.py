"""The sessions of a queue and of a subscription, listed."""
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from stage import SERVICE_BUS, play, promise, queue

client = ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0)


@promise
def a_queue_lists_its_sessions_with_messages_or_state_and_no_others():
    name = queue()
    assert list(client.list_queue_sessions(name)) == []
    with client.get_queue_sender(name) as sender:
        sender.send_messages([ServiceBusMessage("x", session_id=f"s{number}") for number in range(250)])
    assert sorted(client.list_queue_sessions(name)) == sorted(f"s{number}" for number in range(250))
    for session, state in (("s0", None), ("s1", b"kept")):
        with client.get_queue_receiver(name, session_id=session) as receiver:
            [message] = receiver.receive_messages(1, max_wait_time=10)
            receiver.session.set_state(state)
            receiver.complete_message(message)
    assert sorted(client.list_queue_sessions(name)) == sorted(f"s{number}" for number in range(1, 250))


@promise
def a_subscription_lists_its_sessions():
    assert list(client.list_subscription_sessions("topic.1", "sessions")) == []
    with client.get_topic_sender("topic.1") as sender:
        sender.send_messages([ServiceBusMessage("x", session_id=session) for session in ("one", "two", "one")])
    assert sorted(client.list_subscription_sessions("topic.1", "sessions")) == ["one", "two"]
    assert sorted(client.list_subscription_sessions("Topic.1", "Sessions")) == ["one", "two"]


play()
