"""Rules by the administration client: every kind of filter, value and action, as it was said and as it chooses."""
import os
from datetime import datetime, timedelta

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.management import (
    CorrelationRuleFilter, ServiceBusAdministrationClient, SqlRuleAction, SqlRuleFilter, TrueRuleFilter)

from stage import SERVICE_BUS, complete_all, play, promise

HOST = f"localhost:{os.environ['SERIATIM_AMQP'].rpartition(':')[2]}"
CONNECTION = f"Endpoint=sb://{HOST};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0"
INSTANT = datetime(2026, 7, 5, 11, 12, 13)
SPAN = timedelta(days=1, hours=2, minutes=3)


def administration():
    return ServiceBusAdministrationClient.from_connection_string(
        CONNECTION, connection_verify=os.environ["SERIATIM_CERTIFICATE"], retry_total=0)


def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind:
        return
    raise AssertionError(f"{call.__name__} was not refused")


def subscription(admin, topic):
    """A subscription without a rule."""
    admin.create_topic(topic)
    admin.create_subscription(topic, "sub")
    admin.delete_rule(topic, "sub", "$Default")


def received(topic, *messages):
    """What the subscription gets of messages that are sent now."""
    with ServiceBusClient.from_connection_string(SERVICE_BUS, retry_total=0) as client:
        with client.get_topic_sender(topic) as sender:
            sender.send_messages(list(messages))
        with client.get_subscription_receiver(topic, "sub") as receiver:
            return complete_all(receiver, 1)


@promise
def a_filter_is_told_with_every_type_of_value_and_chooses_by_it():
    values = {"text": "str1", "int": 2, "long": 2 ** 31 + 2, "truth": False, "instant": INSTANT, "span": SPAN}
    with administration() as admin:
        subscription(admin, "typed")
        admin.create_rule("typed", "sub", "one", filter=CorrelationRuleFilter(correlation_id="c", properties=values))
        told = admin.get_rule("typed", "sub", "one").filter
        assert type(told) is CorrelationRuleFilter and told.correlation_id == "c"
        assert told.properties == values, told.properties
        admin.create_rule("typed", "sub", "two", filter=SqlRuleFilter(
            "late = @late AND level = @level", parameters={"@late": INSTANT, "@level": 1}))
        told = admin.get_rule("typed", "sub", "two").filter
        assert (told.sql_expression, told.parameters) == (
            "late = @late AND level = @level", {"@late": INSTANT, "@level": 1}), told.parameters
        admin.create_rule("typed", "sub", "three", filter=TrueRuleFilter())
        admin.create_rule("typed", "sub", "four")
        for name in ("three", "four"):
            assert type(admin.get_rule("typed", "sub", name).filter) is TrueRuleFilter
            admin.delete_rule("typed", "sub", name)
        admin.delete_rule("typed", "sub", "two")
        # The client has no way to send these two.
        del values["span"], values["long"]
        admin.delete_rule("typed", "sub", "one")
        admin.create_rule("typed", "sub", "one", filter=CorrelationRuleFilter(correlation_id="c", properties=values))

    def message(body, **changes):
        return ServiceBusMessage(body, correlation_id="c", application_properties={**values, **changes})

    got = received("typed", message("yes"), message("later", instant=INSTANT + timedelta(seconds=1)),
                   message("larger", int=3), message("true", truth=True))
    assert [str(one) for one in got] == ["yes"], got


@promise
def an_action_sets_what_its_parameters_say():
    parameters = {"@instant": INSTANT, "@text": "it's", "@number": 2 ** 40, "@truth": True}
    expression = "SET instant = @instant; SET text = @text + '!'; SET number = @number + 1; SET truth = @truth"
    with administration() as admin:
        subscription(admin, "acting")
        admin.create_rule("acting", "sub", "set", filter=TrueRuleFilter(),
                          action=SqlRuleAction(expression, parameters=parameters))
        told = admin.get_rule("acting", "sub", "set").action
        assert (told.sql_expression, told.parameters) == (expression, parameters), told.parameters
        [message] = received("acting", ServiceBusMessage("a"))
        properties = message.application_properties
        assert (properties[b"text"], properties[b"number"], properties[b"truth"]) == (b"it's!", 2 ** 40 + 1, True)
        refused(HttpResponseError, admin.create_rule, "acting", "sub", "wrong", filter=TrueRuleFilter(),
                action=SqlRuleAction("SET text = @missing", parameters={"@other": 1}))


@promise
def a_rule_gets_another_filter_another_action_and_none():
    with administration() as admin:
        subscription(admin, "changing")
        admin.create_rule("changing", "sub", "rule", filter=SqlRuleFilter("priority = 'low'"))
        rule = admin.get_rule("changing", "sub", "rule")
        rule.filter, rule.action = CorrelationRuleFilter(correlation_id="c"), SqlRuleAction("SET priority = 'low'")
        admin.update_rule("changing", "sub", rule)
        rule = admin.get_rule("changing", "sub", "rule")
        assert (rule.filter.correlation_id, rule.action.sql_expression) == ("c", "SET priority = 'low'")
        [message] = received("changing", ServiceBusMessage("a", correlation_id="c"), ServiceBusMessage("b"))
        assert message.application_properties[b"priority"] == b"low"
        admin.update_rule("changing", "sub", rule, filter=CorrelationRuleFilter(correlation_id="d"), action=None)
        rule = admin.get_rule("changing", "sub", "rule")
        assert (rule.filter.correlation_id, rule.action) == ("d", None), rule.action
        [message] = received("changing", ServiceBusMessage("c", correlation_id="c"),
                             ServiceBusMessage("d", correlation_id="d"))
        assert (str(message), message.application_properties) == ("d", None), message.application_properties


@promise
def a_rule_that_is_not_there_is_not_changed():
    with administration() as admin:
        subscription(admin, "missing")
        admin.create_rule("missing", "sub", "rule", filter=SqlRuleFilter("priority = 'low'"))
        rule = admin.get_rule("missing", "sub", "rule")
        rule.name = "other"
        refused(ResourceNotFoundError, admin.update_rule, "missing", "sub", rule)
        rule.name = "rule"
        refused(ResourceNotFoundError, admin.update_rule, "missing", "nobody", rule)
        rule.filter = SqlRuleFilter("priority = ")
        refused(HttpResponseError, admin.update_rule, "missing", "sub", rule)
        [rule] = admin.list_rules("missing", "sub")
        assert (rule.name, rule.filter.sql_expression) == ("rule", "priority = 'low'")


play()
