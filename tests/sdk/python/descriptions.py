"""Every field of a queue, a topic and a subscription: as its maker says it, as it is changed, as older clients know it."""
import os
from datetime import timedelta

from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import ApiVersion, CorrelationRuleFilter, ServiceBusAdministrationClient, SqlRuleFilter

from stage import SERVICE_BUS, play, promise

HOST = f"localhost:{os.environ['SERIATIM_AMQP'].rpartition(':')[2]}"
CONNECTION = f"Endpoint=sb://{HOST};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0"
# What an entity of each kind knows of time, and how it is said and told.
LENGTHS = ("auto_delete_on_idle", "default_message_time_to_live", "duplicate_detection_history_time_window",
           "lock_duration")


def administration(**options):
    return ServiceBusAdministrationClient.from_connection_string(
        CONNECTION, connection_verify=os.environ["SERIATIM_CERTIFICATE"], retry_total=0, **options)


def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        return str(error)
    raise AssertionError(f"{call.__name__} was not refused")


def minutes(first, seconds=0):
    """A length of its own for each of four fields."""
    return [timedelta(minutes=first + at, seconds=seconds) for at in range(3)] + [timedelta(seconds=first + seconds)]


def lengths(names, values):
    return {name: value for name, value in zip(LENGTHS, values) if name in names}


def check(entity, **fields):
    for name, value in fields.items():
        found = getattr(entity, name)
        if name.startswith("forward_") and value is not None:
            found = found.rpartition("/")[2]
        assert found == value, f"{name} is {found!r}, not {value!r}"


def say(length):
    """A length as text, which the client sends as it is."""
    seconds = int(length.total_seconds())
    return f"PT{seconds // 60}M{seconds % 60}S"


@promise
def every_field_of_a_queue_is_what_its_maker_says_and_what_it_is_changed_to():
    flags = {"dead_lettering_on_message_expiration": True, "enable_batched_operations": True, "enable_express": True}
    with administration() as admin:
        admin.create_topic("onward")
        said = {**lengths(LENGTHS, minutes(10)), **flags, "max_delivery_count": 14, "max_size_in_megabytes": 3072,
                "forward_to": "onward", "forward_dead_lettered_messages_to": "onward", "requires_session": True}
        admin.create_queue("every", enable_partitioning=True, **said)
        check(admin.get_queue("every"), name="every", enable_partitioning=True, **said)
        texts = {**said, **{name: say(length) for name, length in lengths(LENGTHS, minutes(20, 1)).items()}}
        admin.create_queue("texts", **texts)
        check(admin.get_queue("texts"), **{**said, **lengths(LENGTHS, minutes(20, 1))})

        admin.create_queue("changed")
        queue = admin.get_queue("changed")
        queue.lock_duration = timedelta(minutes=2)
        admin.update_queue(queue)
        queue = admin.get_queue("changed")
        check(queue, lock_duration=timedelta(minutes=2))
        for target in ("onward", f"sb://{HOST}/onward", f"sb://{HOST}/changed", None):
            queue.forward_to = queue.forward_dead_lettered_messages_to = target
            admin.update_queue(queue)
            queue = admin.get_queue("changed")
            name = target and target.rpartition("/")[2]
            check(queue, forward_to=name, forward_dead_lettered_messages_to=name)
        fields = {**lengths(LENGTHS, minutes(10)), **flags, "max_delivery_count": 14, "max_size_in_megabytes": 3072}
        for name, value in fields.items():
            setattr(queue, name, value)
        admin.update_queue(queue)
        check(admin.get_queue("changed"), **fields)
        others = {**lengths(LENGTHS, minutes(20)), **{name: False for name in flags}, "max_delivery_count": 15,
                  "max_size_in_megabytes": 2048, "forward_to": None, "forward_dead_lettered_messages_to": None}
        admin.update_queue(admin.get_queue("changed"), **others)
        check(admin.get_queue("changed"), **others)


@promise
def every_field_of_a_topic_is_what_its_maker_says_and_what_it_is_changed_to():
    names = LENGTHS[:3]
    flags = {"enable_batched_operations": True, "enable_express": True}
    with administration() as admin:
        said = {**lengths(names, minutes(10)), **flags, "max_size_in_megabytes": 3072}
        admin.create_topic("every-topic", enable_partitioning=True, **said)
        check(admin.get_topic("every-topic"), name="every-topic", enable_partitioning=True,
              availability_status="Available", status="Active", **said)
        admin.create_topic("text-topic", **{**said, **{name: say(said[name]) for name in names}})
        check(admin.get_topic("text-topic"), **said)

        topic = admin.create_topic("changed-topic")
        topic.default_message_time_to_live = timedelta(minutes=2)
        admin.update_topic(topic)
        topic = admin.get_topic("changed-topic")
        check(topic, default_message_time_to_live=timedelta(minutes=2))
        fields = {**said, "support_ordering": True}
        for name, value in fields.items():
            setattr(topic, name, value)
        admin.update_topic(topic)
        topic = admin.get_topic("changed-topic")
        check(topic, **fields)
        for name, length in lengths(names, minutes(10, 1)).items():
            setattr(topic, name, say(length))
        admin.update_topic(topic)
        topic = admin.get_topic("changed-topic")
        check(topic, **lengths(names, minutes(10, 1)))
        others = {**lengths(names, minutes(14)), **{name: False for name in flags}, "max_size_in_megabytes": 2048,
                  "support_ordering": False}
        admin.update_topic(topic, **others)
        check(admin.get_topic("changed-topic"), **others)


@promise
def every_field_of_a_subscription_is_what_its_maker_says_and_what_it_is_changed_to():
    names = ("auto_delete_on_idle", "default_message_time_to_live", "lock_duration")
    with administration() as admin:
        admin.create_topic("of-subscriptions")
        admin.create_queue("target")
        said = {**lengths(names, minutes(10)), "dead_lettering_on_message_expiration": True,
                "enable_batched_operations": True, "max_delivery_count": 14, "requires_session": True}
        admin.create_subscription("of-subscriptions", "every", **said)
        check(admin.get_subscription("of-subscriptions", "every"), name="every", availability_status="Available",
              status="Active", **said)
        texts = {**said, **{name: say(said[name]) for name in names}}
        admin.create_subscription("of-subscriptions", "texts", **texts)
        check(admin.get_subscription("of-subscriptions", "texts"), **said)

        def change(subscription, **fields):
            admin.update_subscription("of-subscriptions", subscription, **fields)
            return admin.get_subscription("of-subscriptions", subscription.name)

        subscription = admin.create_subscription("of-subscriptions", "changed")
        subscription.lock_duration = timedelta(minutes=2)
        subscription = change(subscription)
        check(subscription, lock_duration=timedelta(minutes=2))
        fields = {name: value for name, value in said.items() if name != "requires_session"}
        for name, value in fields.items():
            setattr(subscription, name, value)
        subscription = change(subscription)
        check(subscription, **fields)
        for target in (f"sb://{HOST}/of-subscriptions", "target", None):
            subscription.forward_to = subscription.forward_dead_lettered_messages_to = target
            subscription = change(subscription)
            name = target and target.rpartition("/")[2]
            check(subscription, forward_to=name, forward_dead_lettered_messages_to=name)
        for name, length in lengths(names, minutes(3, 3)).items():
            setattr(subscription, name, say(length if name == "lock_duration" else length + timedelta(minutes=7)))
        subscription = change(subscription)
        check(subscription, lock_duration=timedelta(seconds=6), auto_delete_on_idle=timedelta(minutes=10, seconds=3))
        others = {**lengths(names, minutes(15)), "dead_lettering_on_message_expiration": False,
                  "max_delivery_count": 15, "forward_to": None, "forward_dead_lettered_messages_to": None}
        check(change(subscription, **others), **others)


@promise
def a_subscription_forwards_its_messages_and_its_dead_letters():
    with administration() as admin:
        admin.create_topic("relay")
        admin.create_queue("kept")
        admin.create_queue("buried")
        admin.create_subscription("relay", "way", forward_to="kept", forward_dead_lettered_messages_to="buried")
        admin.create_subscription("relay", "end", forward_dead_lettered_messages_to="buried")
        check(admin.get_subscription("relay", "way"), forward_to="kept", forward_dead_lettered_messages_to="buried")
    with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
        with client.get_topic_sender("relay") as sender:
            sender.send_messages(ServiceBusMessage("m"))
        with client.get_subscription_receiver("relay", "end") as receiver:
            receiver.dead_letter_message(receiver.receive_messages(1, max_wait_time=10)[0], reason="done")
        for name in ("kept", "buried"):
            with client.get_queue_receiver(name) as receiver:
                assert [str(message) for message in receiver.receive_messages(2, max_wait_time=10)] == ["m"], name


@promise
def what_is_there_is_not_made_twice_and_what_is_wrong_is_not_changed():
    with administration() as admin:
        topic = admin.create_topic("twice")
        refused(ResourceExistsError, admin.create_topic, "twice")
        subscription = admin.create_subscription("twice", "sub")
        refused(ResourceExistsError, admin.create_subscription, "twice", "sub")

        topic.name = "nowhere"
        refused(ResourceNotFoundError, admin.update_topic, topic)
        topic.name = "twice"
        topic.duplicate_detection_history_time_window = timedelta(days=25)
        refused(HttpResponseError, admin.update_topic, topic)
        subscription.name = "nowhere"
        refused(ResourceNotFoundError, admin.update_subscription, "twice", subscription)
        subscription.name = "sub"
        subscription.lock_duration = timedelta(days=25)
        refused(HttpResponseError, admin.update_subscription, "twice", subscription)
        subscription.lock_duration, subscription.requires_session = timedelta(minutes=1), True
        refused(HttpResponseError, admin.update_subscription, "twice", subscription)
        window = admin.get_topic("twice").duplicate_detection_history_time_window
        assert window == timedelta(minutes=10), window
        check(admin.get_subscription("twice", "sub"), lock_duration=timedelta(minutes=1), requires_session=False)
        queue = admin.create_queue("windowed")
        queue.duplicate_detection_history_time_window = timedelta(days=25)
        refused(HttpResponseError, admin.update_queue, queue)


@promise
def topics_and_subscriptions_are_listed_with_what_is_in_them():
    with administration() as admin:
        def topics():
            return [topic.name for topic in admin.list_topics() if topic.name.startswith("listed-")]

        assert topics() == []
        admin.create_topic("listed-1")
        admin.create_topic("listed-2")
        assert topics() == ["listed-1", "listed-2"]
        assert list(admin.list_subscriptions_runtime_properties("listed-1")) == []
        admin.create_subscription("listed-1", "sub")
        infos = {info.name: info for info in admin.list_topics_runtime_properties()}
        assert (infos["listed-1"].subscription_count, infos["listed-2"].subscription_count) == (1, 0)
        for info in infos.values():
            assert info.accessed_at_utc and info.updated_at_utc and info.created_at_utc
            assert (info.size_in_bytes, info.scheduled_message_count) == (0, 0)
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            with client.get_topic_sender("listed-1") as sender:
                sender.send_messages([ServiceBusMessage("a"), ServiceBusMessage("b")])
            with client.get_subscription_receiver("listed-1", "sub") as receiver:
                receiver.dead_letter_message(receiver.receive_messages(1, max_wait_time=10)[0])
        [info] = admin.list_subscriptions_runtime_properties("listed-1")
        assert info.accessed_at_utc and info.updated_at_utc and info.created_at_utc
        check(info, name="sub", total_message_count=2, active_message_count=1, dead_letter_message_count=1,
              transfer_message_count=0, transfer_dead_letter_message_count=0)
        admin.delete_subscription("listed-1", "sub")
        assert list(admin.list_subscriptions_runtime_properties("listed-1")) == []
        for name in topics():
            admin.delete_topic(name)
        assert topics() == []


@promise
def a_topic_tells_how_many_filters_of_each_kind_it_has():
    with administration() as admin:
        admin.create_topic("counted")
        for name in ("one", "two"):
            admin.create_subscription("counted", name)
            admin.create_rule("counted", name, "sql", filter=SqlRuleFilter("1=1"))
            admin.create_rule("counted", name, "correlation", filter=CorrelationRuleFilter(correlation_id="abc"))
        admin.delete_rule("counted", "two", "$Default")
        listed = {info.name: info for info in admin.list_topics_runtime_properties()}["counted"]
        for info in (admin.get_topic_runtime_properties("counted"), listed):
            assert (info.sql_filter_count, info.correlation_filter_count) == (3, 2), info.sql_filter_count
    with administration(api_version=ApiVersion.V2021_05) as admin:
        assert admin.get_topic_runtime_properties("counted").sql_filter_count is None


@promise
def a_client_of_an_older_version_sets_no_field_that_it_does_not_know():
    with administration(api_version=ApiVersion.V2017_04) as admin:
        for kind, create in (("queue", admin.create_queue), ("topic", admin.create_topic)):
            name = f"older-{kind}"
            get, listed, delete = (getattr(admin, f"{verb}_{kind}{s}") for verb, s in (
                ("get", ""), ("list", "s"), ("delete", "")))
            create(name)
            assert get(name).name == name and get(name).max_message_size_in_kilobytes is None
            assert name in [entity.name for entity in listed()]
            getattr(admin, f"update_{kind}")(get(name))
            refused(HttpResponseError, create, f"newer-{kind}", max_message_size_in_kilobytes=1024)
            refused(ResourceNotFoundError, get, f"newer-{kind}")
            delete(name)
            assert name not in [entity.name for entity in listed()]
    with administration() as admin:
        check(admin.create_queue("newer", max_message_size_in_kilobytes=2048), max_message_size_in_kilobytes=2048)


@promise
def a_name_with_a_slash_is_that_of_a_queue_or_a_topic_as_any_other():
    name, topic = "txt/.-_123", "txt/.-_topic"
    with administration() as admin:
        for entity, listed, create, get in (
                (name, admin.list_queues, admin.create_queue, admin.get_queue),
                (topic, admin.list_topics, admin.create_topic, admin.get_topic)):
            create(entity)
            assert get(entity).name == entity
            assert [found.name for found in listed() if "txt" in found.name] == [entity]
            refused(ResourceExistsError, create, entity)
        admin.create_subscription(topic, "sub")
        assert [found.name for found in admin.list_subscriptions(topic)] == ["sub"]
        assert [rule.name for rule in admin.list_rules(topic, "sub")] == ["$Default"]
        check(admin.create_queue("txt/way", forward_to=name), name="txt/way")
        assert admin.get_queue("txt/way").forward_to.endswith(f"/{name}")
        with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
            for sender in (client.get_queue_sender(name), client.get_queue_sender("txt/way"),
                           client.get_topic_sender(topic)):
                with sender:
                    sender.send_messages(ServiceBusMessage("a"))
            for receiver, count in ((client.get_queue_receiver(name), 2),
                                    (client.get_subscription_receiver(topic, "sub"), 1)):
                with receiver:
                    for _ in range(count):
                        [message] = receiver.receive_messages(1, max_wait_time=10)
                        receiver.complete_message(message)
        admin.delete_queue("txt/way")
        admin.delete_queue(name)
        admin.delete_topic(topic)
        refused(ResourceNotFoundError, admin.get_queue, name)
        assert not [found.name for found in admin.list_queues() if "txt" in found.name]
        assert not [found.name for found in admin.list_topics() if "txt" in found.name]
        for wrong in ("a//b", "a/", "a/$b"):
            refused(HttpResponseError, admin.get_queue, wrong)


@promise
def sessions_are_received_only_where_they_are_said_and_then_nothing_else():
    with administration() as admin:
        admin.create_queue("with-sessions", requires_session=True)
        admin.create_queue("without-sessions", requires_session=False)
    with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
        for name, options in (("with-sessions", {}), ("without-sessions", {"session_id": "s"})):
            with client.get_queue_sender(name) as sender:
                sender.send_messages(ServiceBusMessage("a", session_id="s"))

            def receive():
                with client.get_queue_receiver(name, **options) as receiver:
                    receiver.receive_messages(1, max_wait_time=1)

            refused(ServiceBusError, receive)


play()
