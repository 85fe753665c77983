//! Handlers and notices, read from the form.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use crate::api::WireDuration;
use crate::definition::address::check_queue_url;
use crate::definition::address::check_url;
use crate::definition::credential::bearer;
use crate::definition::credential::signing_secrets;
use crate::definition::diagnostic::Mistakes;
use crate::definition::diagnostic::Trouble;
use crate::definition::diagnostic::line_and_column;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::span;
use crate::definition::file_value::value;
use crate::definition::form_handler::HandlerForm;
use crate::definition::form_handler::NotifyForm;
use crate::definition::handler::ForwardTarget;
use crate::definition::handler::HandlerDefinition;
use crate::definition::handler::HandlerSpec;
use crate::definition::handler::ProgramDefinition;
use crate::definition::handler::SecretSource;
use crate::definition::handler::WebhookDefinition;
use crate::definition::notice::Notice;
use crate::definition::notice::NotifyDefinition;
use crate::definition::program::check_script;
use crate::definition::program::find_file;
use crate::definition::program::find_program;
use crate::definition::read_options::rate;
use crate::definition::read_secret::secret_source;
use crate::id::QueueName;
use crate::limits;
use crate::tls_connector::certificates;

/// Reads handlers and notices of one file.
pub(crate) struct HandlerReader<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) renew_for: Duration,
    pub(crate) mistakes: &'a mut Mistakes,
}

impl HandlerReader<'_> {
    /// The handlers, without those that are wrong.
    pub(crate) fn handlers(&mut self, forms: &[FileValue<HandlerForm>]) -> Vec<HandlerDefinition> {
        let mut handlers = Vec::new();
        let mut seen: BTreeMap<Option<&str>, Range<usize>> = BTreeMap::new();
        for form in forms {
            let subject = form.value.subject.as_ref();
            let at = subject.map_or(&form.span, |subject| &subject.span);
            self.subject(subject);
            if let Some(first) = seen.get(&subject.map(|subject| subject.value.as_str())) {
                let (line, _) = line_and_column(self.mistakes.text(), first.start);
                let which = match subject {
                    Some(subject) => format!("the subject `{}`", subject.value),
                    None => "every other subject".to_owned(),
                };
                self.mistakes.add(at, format!("{which} has a handler already, on line {line}"));
            }
            seen.entry(subject.map(|subject| subject.value.as_str())).or_insert_with(|| at.clone());
            handlers.extend(self.handler(form));
        }
        handlers
    }

    fn handler(&mut self, form: &FileValue<HandlerForm>) -> Option<HandlerDefinition> {
        let FileValue { value: handler, span: at } = form;
        let kinds = [
            ("exec", span(&handler.exec)),
            ("persistent", span(&handler.persistent)),
            ("http", span(&handler.http)),
            ("forward", span(&handler.forward)),
        ];
        let kind = self.one_kind(&kinds, "handler", at)?;
        self.misplaced(handler, kind);
        let timeout = self.timeout(handler.timeout.as_ref());
        let rate = rate(handler.rate, value(&handler.burst), span(&handler.burst).as_ref(), self.mistakes);
        let spec = match kind {
            "exec" => HandlerSpec::Exec {
                program: self.program(handler.exec.as_ref()?, &handler.env, &handler.pass_env)?,
                output_bytes_max: value(&handler.output_bytes_max).unwrap_or(limits::OUTPUT_BYTES_MAX),
            },
            "persistent" => HandlerSpec::Persistent {
                program: self.program(handler.persistent.as_ref()?, &handler.env, &handler.pass_env)?,
                processes: value(&handler.processes).unwrap_or(1),
                in_flight_max: value(&handler.in_flight_max).unwrap_or(limits::IN_FLIGHT_DEFAULT),
            },
            "http" => {
                let secret = self.secret(&handler.secret_file, &handler.secret_env, "secret");
                let allow_private = value(&handler.allow_private);
                let address =
                    self.address(handler.http.as_ref()?, check_url, allow_private, &handler.ca_file)?;
                HandlerSpec::Http { address, secret }
            }
            _ => HandlerSpec::Forward {
                target: self.target(handler, handler.forward.as_ref()?)?,
                keep_position: value(&handler.keep_position).unwrap_or(false),
            },
        };
        Some(HandlerDefinition {
            subject: handler.subject.as_ref().map(|subject| subject.value.clone()),
            timeout,
            rate,
            credentials: spec.credentials(),
            spec,
        })
    }

    /// Who is notified, unless that is wrong.
    pub(crate) fn notify(&mut self, form: &FileValue<NotifyForm>) -> Option<NotifyDefinition> {
        let FileValue { value: notify, span: at } = form;
        let kinds = [("exec", span(&notify.exec)), ("http", span(&notify.http))];
        let after = notify.after.map_or(limits::NOTIFY_AFTER_DEFAULT, |span| span.0);
        let timeout = notify.timeout.map_or(limits::HANDLER_TIMEOUT_DEFAULT, |span| span.0);
        let kind = self.one_kind(&kinds, "notice", at)?;
        let settings = [
            ("env", span(&notify.env), "exec"),
            ("pass_env", span(&notify.pass_env), "exec"),
            ("secret_file", span(&notify.secret_file), "http"),
            ("secret_env", span(&notify.secret_env), "http"),
            ("allow_private", span(&notify.allow_private), "http"),
            ("ca_file", span(&notify.ca_file), "http"),
        ];
        for (name, at, of) in settings {
            self.misplaced_unless(of == kind, name, at, of);
        }
        let by = match kind {
            "exec" => Notice::Exec(self.program(notify.exec.as_ref()?, &notify.env, &notify.pass_env)?),
            _ => {
                let secret = self.secret(&notify.secret_file, &notify.secret_env, "secret");
                let allow_private = value(&notify.allow_private);
                let address =
                    self.address(notify.http.as_ref()?, check_url, allow_private, &notify.ca_file)?;
                Notice::Http { address, secret }
            }
        };
        Some(NotifyDefinition { after, timeout, by })
    }

    fn subject(&mut self, subject: Option<&FileValue<String>>) {
        let Some(subject) = subject else { return };
        match subject.value.len() {
            0 => self.mistakes.add_with_help(
                &subject.span,
                "the subject is empty",
                "leave `subject` out to handle every other subject",
            ),
            length if length > limits::HEADER_BYTES_MAX => self.mistakes.add(
                &subject.span,
                format!("the subject has {length} bytes, at most {} are allowed", limits::HEADER_BYTES_MAX),
            ),
            _ => {}
        }
    }

    /// The one kind that is given.
    fn one_kind<'k>(
        &mut self,
        kinds: &[(&'k str, Option<Range<usize>>)],
        what: &str,
        at: &Range<usize>,
    ) -> Option<&'k str> {
        let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        let mut given = kinds.iter().filter_map(|(name, span)| Some((*name, span.as_ref()?)));
        match (given.next(), given.next()) {
            (Some((kind, _)), None) => return Some(kind),
            (Some((first, _)), Some((second, at))) => {
                let message = format!("a {what} has one of {names}; this one has `{first}` and `{second}`");
                self.mistakes.add(at, message);
            }
            // What it had may have been taken out as a mistake.
            _ if self.mistakes.are_below(at) => {}
            _ => {
                self.mistakes.add_with_help(
                    at,
                    format!("this {what} does nothing"),
                    format!("give it one of {names}"),
                );
            }
        }
        None
    }

    fn misplaced(&mut self, handler: &HandlerForm, kind: &str) {
        let with_program = [("env", span(&handler.env)), ("pass_env", span(&handler.pass_env))];
        let with_exec = [("output_bytes_max", span(&handler.output_bytes_max))];
        let with_persistent =
            [("processes", span(&handler.processes)), ("in_flight_max", span(&handler.in_flight_max))];
        let with_http =
            [("secret_file", span(&handler.secret_file)), ("secret_env", span(&handler.secret_env))];
        let with_forward = [
            ("key_file", span(&handler.key_file)),
            ("key_env", span(&handler.key_env)),
            ("keep_position", span(&handler.keep_position)),
        ];
        let with_url = [("allow_private", span(&handler.allow_private)), ("ca_file", span(&handler.ca_file))];
        self.belong_to(&["exec", "persistent"], kind, with_program);
        self.belong_to(&["exec"], kind, with_exec);
        self.belong_to(&["persistent"], kind, with_persistent);
        self.belong_to(&["http"], kind, with_http);
        self.belong_to(&["forward"], kind, with_forward);
        self.belong_to(&["http", "forward"], kind, with_url);
    }

    /// Settings that only handlers of these kinds have.
    fn belong_to<const N: usize>(
        &mut self,
        kinds: &[&str],
        kind: &str,
        settings: [(&str, Option<Range<usize>>); N],
    ) {
        for (name, at) in settings {
            self.misplaced_unless(kinds.contains(&kind), name, at, &kinds.join(" or "));
        }
    }

    fn misplaced_unless(&mut self, fits: bool, name: &str, at: Option<Range<usize>>, kinds: &str) {
        if let (Some(at), false) = (at, fits) {
            self.mistakes.add(&at, format!("`{name}` says nothing here: it belongs to {kinds}"));
        }
    }

    fn timeout(&mut self, given: Option<&FileValue<WireDuration>>) -> Duration {
        let Some(FileValue { value: WireDuration(timeout), span: at }) = given else {
            return limits::HANDLER_TIMEOUT_DEFAULT.min(self.renew_for);
        };
        if *timeout > self.renew_for {
            let (timeout, renew_for) = (WireDuration(*timeout), WireDuration(self.renew_for));
            self.mistakes.add_with_help(
                at,
                format!(
                    "after {renew_for} the lock is not renewed any more, so no attempt can take {timeout}"
                ),
                format!("write renew_for = \"{timeout}\" in [delivery]"),
            );
        }
        *timeout
    }

    fn program(
        &mut self,
        argv: &FileValue<Vec<String>>,
        env: &Option<FileValue<BTreeMap<String, String>>>,
        pass_env: &Option<FileValue<Vec<String>>>,
    ) -> Option<ProgramDefinition> {
        let given = env.iter().flat_map(|env| env.value.keys().map(move |name| (name, &env.span)));
        let passed =
            pass_env.iter().flat_map(|names| names.value.iter().map(move |name| (name, &names.span)));
        for (name, at) in given.chain(passed) {
            self.env_name(name, at);
        }
        if let Some(env) = env.as_ref().filter(|env| env.value.values().any(|value| value.contains('\0'))) {
            self.mistakes.add(&env.span, "no environment variable has a value with a zero byte");
        }
        if argv.value.iter().any(|argument| argument.contains('\0')) {
            self.mistakes.add(&argv.span, "no program takes an argument with a zero byte");
        }
        let script = check_script(&argv.value, self.folder);
        self.mistakes.found(script, &argv.span);
        let path = env.as_ref().and_then(|env| env.value.get("PATH"));
        let found = find_program(argv.value.first()?, self.folder, path.map(String::as_str));
        Some(ProgramDefinition {
            path: self.mistakes.found(found, &argv.span)?,
            argv: argv.value.clone(),
            folder: std::path::absolute(self.folder).unwrap_or_else(|_| self.folder.to_owned()),
            env: env.as_ref().map(|env| env.value.clone()).unwrap_or_default(),
            pass_env: pass_env.as_ref().map(|names| names.value.clone()).unwrap_or_default(),
        })
    }

    fn env_name(&mut self, name: &str, at: &Range<usize>) {
        if name.is_empty() || name.contains(['=', '\0']) {
            self.mistakes.add(at, format!("{name:?} cannot be the name of an environment variable"));
        } else if name.starts_with("SERIATIM_") {
            self.mistakes.add(at, format!("`{name}` is set by the daemon: names with SERIATIM_ are its own"));
        }
    }

    fn address(
        &mut self,
        url: &FileValue<String>,
        check: fn(&str, bool) -> Result<(), Trouble>,
        allow_private: Option<bool>,
        ca_file: &Option<FileValue<String>>,
    ) -> Option<WebhookDefinition> {
        let allow_private = allow_private.unwrap_or(false);
        let ca_file = match ca_file {
            Some(file) => {
                let found = find_file(&file.value, self.folder);
                let found = self.mistakes.found(found, &file.span)?;
                self.mistakes.checked(certificates(&found), &file.span)?;
                Some(found)
            }
            None => None,
        };
        self.mistakes.found(check(&url.value, allow_private), &url.span)?;
        Some(WebhookDefinition { url: url.value.clone(), allow_private, ca_file })
    }

    fn target(&mut self, handler: &HandlerForm, forward: &FileValue<String>) -> Option<ForwardTarget> {
        if forward.value.contains("://") {
            let key = self.secret(&handler.key_file, &handler.key_env, "key");
            let allow_private = value(&handler.allow_private);
            let address = self.address(forward, check_queue_url, allow_private, &handler.ca_file)?;
            return Some(ForwardTarget::Remote { address, key });
        }
        let settings = [
            ("key_file", span(&handler.key_file)),
            ("key_env", span(&handler.key_env)),
            ("allow_private", span(&handler.allow_private)),
            ("ca_file", span(&handler.ca_file)),
        ];
        for (name, at) in settings {
            self.misplaced_unless(false, name, at, "a queue of another daemon, http://host:port/queue");
        }
        let queue = QueueName::new(&forward.value).map_err(|misuse| (misuse.to_string(), None));
        Some(ForwardTarget::Queue(self.mistakes.found(queue, &forward.span)?))
    }

    /// A secret that can be read and used now.
    fn secret(
        &mut self,
        file: &Option<FileValue<String>>,
        env: &Option<FileValue<String>>,
        what: &'static str,
    ) -> Option<SecretSource> {
        let given = secret_source((file, env), what, self.folder, self.mistakes)?;
        let (secret, at) = given?;
        // As it will be when the definition is put in force.
        let read = secret.read(what).and_then(|text| match what {
            "key" => bearer(&text).map(drop),
            _ => signing_secrets(&text).map(drop),
        });
        self.mistakes.checked(read, at).map(|()| secret)
    }
}
