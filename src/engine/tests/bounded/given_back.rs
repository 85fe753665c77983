//! A place that is given back while very many messages stand behind it.

use super::*;

impl Turns {
    /// Where the workflow has a gap: in after-order, the message whose predecessor is unknown.
    fn gap(&mut self) -> Option<u64> {
        let name = queue();
        let record = self.store.turn(|turn| {
            let queue = turn.queue_named(&name)?.expect("it was created").id;
            turn.workflow(&WorkflowKey { queue, stream: WorkflowRef::Named(workflow()) })
        });
        record.unwrap().and_then(|record| record.rare.gap).map(|gap| gap.at)
    }
}

#[test]
fn a_place_given_back_before_many_takes_turns_of_bounded_work_and_offers_none_of_them() {
    for options in
        [QueueOptions::by_position(), QueueOptions { order: Order::After, ..QueueOptions::default() }]
    {
        let order = options.order;
        let mut turns = Turns::with_first(options, None, Some(Timestamp::from_millis(u64::MAX >> 8)));
        let counts = turns.counts();
        assert_eq!((counts.ready, counts.early, counts.scheduled), (MANY - 1, 0, 1));
        let (first, void) = (SequenceNumber::new(1), false);
        turns.ask(Command::Cancel(verbs::Cancel { queue: queue(), sequence: first, void }));
        assert!(turns.counts().ready > 0, "the rest follows in the next turns");
        turns.ask(Command::Receive(verbs::Receive { queue: queue(), max: 1, token: token(1) }));
        assert_eq!(turns.counts().locked, 0, "nothing goes on without its predecessor");
        turns.finish();
        turns.check("a place that was given back");
        let counts = turns.counts();
        assert_eq!((counts.ready, counts.early, counts.cancelled), (0, MANY - 1, 1));
        turns.ask(Command::Send(verbs::Send { queue: queue(), messages: vec![numbered(order, 1)] }));
        turns.finish();
        turns.check("a place that was filled again");
        assert_eq!((turns.counts().ready, turns.counts().early), (MANY, 0));
    }
}

#[test]
fn messages_that_come_while_a_run_is_shortened_do_no_step_of_it_each() {
    let options = QueueOptions { order: Order::After, ..QueueOptions::default() };
    let order = options.order;
    let mut turns = Turns::with_first(options, None, Some(Timestamp::from_millis(u64::MAX >> 8)));
    let (first, void) = (SequenceNumber::new(1), false);
    turns.ask(Command::Cancel(verbs::Cancel { queue: queue(), sequence: first, void }));
    let messages = (1..=64).map(|number| numbered(order, MANY + number)).collect();
    turns.ask(Command::Send(verbs::Send { queue: queue(), messages }));
    assert!(turns.counts().ready > 0, "the rest follows in the next turns");
    turns.finish();
    turns.check("a place that was given back before messages that came");
    assert_eq!((turns.counts().ready, turns.counts().early), (0, MANY + 63));
}

#[test]
fn what_follows_the_cancelled_end_of_a_run_that_is_still_extended_misses_its_predecessor() {
    let (order, exhausted) = (Order::After, Some(ExhaustedPolicy::Skip));
    let options = QueueOptions { order, exhausted, ..QueueOptions::default() };
    let mut turns = Turns::with_queue(StoreOptions::default(), options);
    // The first message lets so many join, itself counted.
    let last = limits::EXTEND_MAX as u64;
    for number in 2..last {
        turns.send(mortal(order, number));
    }
    let until = KeptBack::Until(Timestamp::from_millis(u64::MAX >> 8));
    turns.send(NewMessage { kept_back: Some(until), ..numbered(order, last) });
    // Whoever is taken for the first for want of a better one is the one with the smallest ID.
    let id = || MessageId::new("z").unwrap();
    turns.send(NewMessage { message_id: Some(id()), ..numbered(order, last + 1) });
    turns.send(NewMessage { place: Place::After(Some(id())), ..numbered(order, last + 2) });
    let send = Command::Send(verbs::Send { queue: queue(), messages: vec![mortal(order, 1)] });
    let (sequence, void) = (SequenceNumber::new(last - 1), false);
    turns.turn([send, Command::Cancel(verbs::Cancel { queue: queue(), sequence, void })]);
    assert_eq!((turns.counts().cancelled, turns.counts().early), (1, 2), "the run ends before it");
    turns.pass_time(MINUTE);
    assert_eq!(turns.counts().dead_lettered, last - 1);
    assert_eq!(turns.gap(), Some(last), "what followed the cancelled one");
}
