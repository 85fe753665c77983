"""Queues, topics, subscriptions and rules, made and changed by the client for administration, and used as it says."""
import os
from datetime import timedelta

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import (
    AuthorizationRule, CorrelationRuleFilter, EntityStatus, FalseRuleFilter, ServiceBusAdministrationClient,
    SqlRuleAction, SqlRuleFilter, TrueRuleFilter)

from stage import SERVICE_BUS, kill, play, promise

HOST = f"localhost:{os.environ['SERIATIM_AMQP'].rpartition(':')[2]}"
CONNECTION = f"Endpoint=sb://{HOST};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0"


def administration():
    return ServiceBusAdministrationClient.from_connection_string(
        CONNECTION, connection_verify=os.environ["SERIATIM_CERTIFICATE"], retry_total=0)


def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call.__name__} was not refused")


@promise
def a_queue_is_what_its_maker_says():
    with administration() as admin:
        made = admin.create_queue(
            "made", lock_duration=timedelta(seconds=13), max_delivery_count=3, requires_session=True,
            default_message_time_to_live="PT11M", dead_lettering_on_message_expiration=True,
            requires_duplicate_detection=True, duplicate_detection_history_time_window=timedelta(minutes=12),
            user_metadata="who <made> it & why", max_size_in_megabytes=3072, auto_delete_on_idle=timedelta(minutes=10))
        for queue in (made, admin.get_queue("made"), admin.get_queue("MADE")):
            assert queue.lock_duration == timedelta(seconds=13), queue.lock_duration
            assert (queue.max_delivery_count, queue.requires_session) == (3, True)
            assert queue.default_message_time_to_live == timedelta(minutes=11)
            assert queue.dead_lettering_on_message_expiration and queue.requires_duplicate_detection
            assert queue.duplicate_detection_history_time_window == timedelta(minutes=12)
            assert (queue.user_metadata, queue.max_size_in_megabytes) == ("who <made> it & why", 3072)
            assert queue.auto_delete_on_idle == timedelta(minutes=10)
            assert queue.status == EntityStatus.ACTIVE
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            with client.get_queue_sender("made") as sender:
                refused(ServiceBusError, sender.send_messages, ServiceBusMessage("without a session"))
                sender.send_messages(ServiceBusMessage("with one", session_id="s", message_id="1"))
                sender.send_messages(ServiceBusMessage("again", session_id="s", message_id="1"))
        counts = admin.get_queue_runtime_properties("made")
        assert (counts.total_message_count, counts.active_message_count) == (1, 1), counts
        admin.delete_queue("made")


@promise
def what_is_there_is_not_made_again_and_what_is_not_is_not_found():
    with administration() as admin:
        admin.create_queue("once")
        refused(ResourceExistsError, admin.create_queue, "once")
        refused(ResourceExistsError, admin.create_topic, "once")
        refused(ResourceNotFoundError, admin.get_queue, "never")
        refused(ResourceNotFoundError, admin.delete_queue, "never")
        refused(ResourceNotFoundError, admin.get_topic, "never")
        refused(ResourceNotFoundError, admin.get_subscription, "never", "never")
        admin.delete_queue("once")
        refused(ResourceNotFoundError, admin.get_queue, "once")
        for wrong in ({"lock_duration": "PT0S"}, {"max_delivery_count": 0}, {"auto_delete_on_idle": "PT1M"}):
            assert "400" in refused(HttpResponseError, admin.create_queue, "wrong", **wrong) or True
        refused(ResourceNotFoundError, admin.get_queue, "wrong")


@promise
def a_queue_is_changed_but_not_in_what_is_fixed():
    with administration() as admin:
        queue = admin.create_queue("changed", user_metadata="before")
        queue.max_delivery_count = 7
        queue.lock_duration = timedelta(seconds=20)
        queue.user_metadata = None
        queue.dead_lettering_on_message_expiration = True
        admin.update_queue(queue)
        after = admin.get_queue("changed")
        assert (after.max_delivery_count, after.lock_duration) == (7, timedelta(seconds=20))
        assert after.dead_lettering_on_message_expiration and not after.user_metadata, after.user_metadata
        after.requires_session = True
        refused(HttpResponseError, admin.update_queue, after)
        after.requires_session, after.requires_duplicate_detection = False, True
        refused(HttpResponseError, admin.update_queue, after)
        admin.delete_queue("changed")
        refused(HttpResponseError, admin.update_queue, queue)


@promise
def a_queue_that_is_disabled_is_used_by_nobody():
    with administration() as admin:
        queue = admin.create_queue("disabled")
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            def send():
                with client.get_queue_sender("disabled") as sender:
                    sender.send_messages(ServiceBusMessage("a"))

            def receive():
                with client.get_queue_receiver("disabled") as receiver:
                    return [receiver.complete_message(message) for message in receiver.receive_messages(1, 2)]

            for status, may_send, may_receive in ((EntityStatus.SEND_DISABLED, False, True),
                                                  (EntityStatus.RECEIVE_DISABLED, True, False),
                                                  (EntityStatus.DISABLED, False, False),
                                                  (EntityStatus.ACTIVE, True, True)):
                queue.status = status
                admin.update_queue(queue)
                assert admin.get_queue("disabled").status == status
                send() if may_send else refused(ServiceBusError, send)
                receive() if may_receive else refused(ServiceBusError, receive)


@promise
def topics_and_subscriptions_are_made_with_rules_that_choose():
    with administration() as admin:
        topic = admin.create_topic("topic", user_metadata="t", default_message_time_to_live="P1D")
        assert (topic.user_metadata, topic.default_message_time_to_live) == ("t", timedelta(days=1))
        admin.create_subscription("topic", "all", max_delivery_count=4, requires_session=False)
        admin.create_subscription("topic", "some")
        rules = list(admin.list_rules("topic", "some"))
        assert [rule.name for rule in rules] == ["$Default"] and isinstance(rules[0].filter, TrueRuleFilter)
        admin.delete_rule("topic", "some", "$Default")
        admin.create_rule("topic", "some", "large", filter=SqlRuleFilter(
            "amount > @least", parameters={"@least": 100}), action=SqlRuleAction("SET size = 'large'"))
        admin.create_rule("topic", "some", "red", filter=CorrelationRuleFilter(
            label="paint", properties={"color": "red", "count": 3, "open": True, "ratio": 0.5}))
        admin.create_rule("topic", "some", "never", filter=FalseRuleFilter())
        refused(ResourceExistsError, admin.create_rule, "topic", "some", "red", filter=TrueRuleFilter())
        red = admin.get_rule("topic", "some", "red")
        assert red.filter.label == "paint"
        assert red.filter.properties == {"color": "red", "count": 3, "open": True, "ratio": 0.5}, red.filter.properties
        large = admin.get_rule("topic", "some", "large")
        assert (large.filter.sql_expression, large.filter.parameters) == ("amount > @least", {"@least": 100})
        assert large.action.sql_expression == "SET size = 'large'"
        red.filter = CorrelationRuleFilter(label="varnish")
        admin.update_rule("topic", "some", red)
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            with client.get_topic_sender("topic") as sender:
                sender.send_messages([
                    ServiceBusMessage("1", application_properties={"amount": 101}),
                    ServiceBusMessage("2", application_properties={"amount": 5}),
                    ServiceBusMessage("3", subject="varnish"), ServiceBusMessage("4", subject="paint")])
            with client.get_subscription_receiver("topic", "some") as receiver:
                got = receiver.receive_messages(5, max_wait_time=5)
                assert [str(message) for message in got] == ["1", "3"], got
                assert got[0].application_properties[b"size"] == b"large", got[0].application_properties
        assert admin.get_subscription_runtime_properties("topic", "all").total_message_count == 4
        subscription = admin.get_subscription("topic", "all")
        assert subscription.max_delivery_count == 4
        assert subscription.default_message_time_to_live == timedelta(days=1)
        subscription.max_delivery_count = 5
        admin.update_subscription("topic", subscription)
        assert admin.get_subscription("topic", "all").max_delivery_count == 5
        assert [found.name for found in admin.list_subscriptions("topic")] == ["all", "some"]
        assert admin.get_topic_runtime_properties("topic").subscription_count == 2
        admin.delete_subscription("topic", "all")
        refused(ResourceNotFoundError, admin.get_subscription, "topic", "all")
        admin.delete_topic("topic")
        refused(ResourceNotFoundError, admin.get_topic, "topic")


@promise
def lists_go_over_many_pages():
    with administration() as admin:
        names = [f"page-{number:03}" for number in range(123)]
        for name in names:
            admin.create_queue(name)
        listed = [queue.name for queue in admin.list_queues()]
        assert [name for name in listed if name.startswith("page-")] == names
        assert len(listed) == len(set(listed))
        runtime = [queue.name for queue in admin.list_queues_runtime_properties()]
        assert runtime == listed
        assert admin.get_namespace_properties().name == "localhost"


@promise
def messages_and_dead_letters_go_on_where_it_is_said():
    with administration() as admin:
        admin.create_queue("goal")
        admin.create_queue("graves")
        admin.create_queue("way", forward_to="goal")
        queue = admin.create_queue("mortal", forward_dead_lettered_messages_to="graves", requires_session=True)
        assert admin.get_queue("way").forward_to.endswith("/goal"), admin.get_queue("way").forward_to
        assert queue.forward_dead_lettered_messages_to.endswith("/graves")
        refused(HttpResponseError, admin.create_queue, "lost", forward_to="nowhere")
        refused(ResourceNotFoundError, admin.get_queue, "lost")
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            with client.get_queue_sender("way") as sender:
                sender.send_messages([ServiceBusMessage(str(number), subject="s", message_id=f"m{number}",
                                                        application_properties={"n": number}) for number in range(50)])
            with client.get_queue_receiver("goal") as receiver:
                got = []
                while len(got) < 50:
                    messages = receiver.receive_messages(50, max_wait_time=10)
                    assert messages, len(got)
                    for message in messages:
                        got.append((str(message), message.subject, message.message_id,
                                    message.application_properties[b"n"], message.delivery_count))
                        receiver.complete_message(message)
            assert got == [(str(number), "s", f"m{number}", number, 0) for number in range(50)], got
            with client.get_queue_sender("mortal") as sender:
                sender.send_messages(ServiceBusMessage("m", session_id="s"))
            with client.get_queue_receiver("mortal", session_id="s") as receiver:
                receiver.dead_letter_message(receiver.receive_messages(1, 5)[0], "tired", "of life")
            with client.get_queue_receiver("graves") as receiver:
                message = receiver.receive_messages(1, max_wait_time=10)[0]
                reason, why = (message.application_properties[name] for name in (
                    b"DeadLetterReason", b"DeadLetterErrorDescription"))
                assert (str(message), reason, why) == ("m", b"tired", b"of life"), (reason, why)
                receiver.complete_message(message)
        way = admin.get_queue("way")
        way.forward_to = None
        admin.update_queue(way)
        assert not admin.get_queue("way").forward_to
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            with client.get_queue_sender("way") as sender:
                sender.send_messages(ServiceBusMessage("stays"))
            with client.get_queue_receiver("way") as receiver:
                assert [str(message) for message in receiver.receive_messages(1, 10)] == ["stays"]


@promise
def what_goes_on_arrives_once_although_the_daemon_is_killed():
    with administration() as admin:
        admin.create_queue("far")
        admin.create_queue("near", forward_to="far")
    count = 0
    for _ in range(4):
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            with client.get_queue_sender("near") as sender:
                for _ in range(5):
                    sender.send_messages([ServiceBusMessage(str(count + number)) for number in range(50)])
                    count += 50
        kill()
    with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
        with client.get_queue_receiver("far") as receiver:
            got = []
            while len(got) < count:
                messages = receiver.receive_messages(100, max_wait_time=10)
                assert messages, len(got)
                for message in messages:
                    got.append(int(str(message)))
                    receiver.complete_message(message)
            assert not receiver.receive_messages(1, max_wait_time=2)
    assert got == list(range(count)), [one for one, other in zip(got, range(count)) if one != other][:10]


@promise
def authorization_rules_are_told_back():
    with administration() as admin:
        rule = AuthorizationRule(
            type="SharedAccessAuthorizationRule", claim_type="SharedAccessKey", claim_value="None",
            rights=["Manage", "Send", "Listen"], key_name="all", primary_key="cHJpbWFyeQ==", secondary_key="c2Vjb25k")
        admin.create_queue("ruled", authorization_rules=[rule])
        back = admin.get_queue("ruled").authorization_rules
        assert [(one.key_name, one.rights, one.primary_key) for one in back] == [
            ("all", ["Manage", "Send", "Listen"], "cHJpbWFyeQ==")], back


play()
