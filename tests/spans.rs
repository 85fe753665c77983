//! Handlers run inside a span that names their message. A process of its own, because whether a span is wanted is
//! remembered for the whole process.

mod spans {
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::time::Duration;

    use seriatim::Context;
    use seriatim::Failure;
    use seriatim::Message;
    use seriatim::Outcome;
    use seriatim::Processor;
    use seriatim::QueueOptions;
    use seriatim::Raw;

    /// Notes the spans that are entered, with their fields.
    #[derive(Clone, Default)]
    struct Spans {
        opened: Arc<Mutex<Vec<String>>>,
        entered: Arc<Mutex<Vec<String>>>,
    }

    struct Fields<'a>(&'a mut String);

    impl tracing::field::Visit for Fields<'_> {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            self.0.push_str(&format!(" {field}={value:?}"));
        }
    }

    impl tracing::Subscriber for Spans {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            metadata.is_span()
        }

        fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            let mut text = span.metadata().name().to_owned();
            span.record(&mut Fields(&mut text));
            let mut opened = self.opened.lock().expect("nobody panics with it");
            opened.push(text);
            tracing::span::Id::from_u64(opened.len() as u64)
        }

        fn enter(&self, span: &tracing::span::Id) {
            let index = usize::try_from(span.into_u64()).expect("few spans") - 1;
            let opened = self.opened.lock().expect("nobody panics with it")[index].clone();
            self.entered.lock().expect("nobody panics with it").push(opened);
        }

        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[tokio::test]
    async fn a_handler_runs_inside_a_span_that_names_its_message() {
        let spans = Spans::default();
        tracing::subscriber::set_global_default(spans.clone()).expect("nobody else listens");
        let (engine, _clock) = seriatim::testing::engine().await.expect("an engine in memory opens");
        let queue = engine.client().create_queue("q", QueueOptions::default()).await.expect("a new queue");
        let receipt = queue.send(Message::new("1").workflow("w")).await.expect("accepted");
        let entered = spans.entered.clone();
        let (done, mut handled) = tokio::sync::mpsc::unbounded_channel();
        let handler = move |_: Context, _: Raw| {
            let inside = entered.lock().expect("nobody panics with it").last().cloned();
            let done = done.clone();
            async move {
                done.send(inside)?;
                Ok::<_, Failure>(Outcome::Complete)
            }
        };
        let pool = Processor::new(queue).start(handler);
        let inside = tokio::time::timeout(Duration::from_secs(60), handled.recv()).await;
        pool.stop().await.expect("the engine goes on");
        let number = receipt.sequence_number().expect("it was accepted");
        let expected = format!("handle queue=q workflow=w sequence={number} attempt=1");
        assert_eq!(inside.expect("it is handled").flatten(), Some(expected));
    }
}
