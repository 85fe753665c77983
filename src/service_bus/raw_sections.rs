//! What a message of Service Bus says that a message of ours has no word for, kept with it: receivers of Service Bus get
//! back the bytes that were sent.

use bytes::BufMut;
use bytes::Bytes;
use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::message::MessageBody;
use crate::amqp::message::Sections;
use crate::amqp::message::encode_data;
use crate::amqp::message::encode_value;
use crate::header::PropertyValue;

/// The property that holds it.
pub(crate) use crate::header::RAW_SECTIONS;

/// The version of what is written here.
const VERSION: u8 = 1;

/// Descriptor of a data section, as everybody writes it.
const DATA: [u8; 3] = [0x00, 0x53, 0x75];

/// Constructor of binary with a length of four bytes.
const WIDE: u8 = 0xb0;

/// How the body of our message is the body of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyForm {
    /// Bytes of one data section in its smallest form.
    Data,
    /// Bytes of one data section whose length is written wide, although it is small.
    WideData,
    /// Text of a value section.
    Text,
    /// There is no body.
    Nothing,
    /// All body sections as they came.
    Sections,
}

/// What is kept of a message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RawSections {
    pub(crate) form: BodyForm,
    /// Header, annotations, properties, application properties and footer as they came, without a body.
    pub(crate) sections: Sections,
}

impl BodyForm {
    /// How a body is encoded, and its bytes.
    pub(crate) fn of(sections: &Sections, body: &MessageBody) -> (BodyForm, Bytes) {
        let raw = &sections.body;
        match body {
            MessageBody::Empty => (BodyForm::Nothing, Bytes::new()),
            MessageBody::Data(data) if data.len() == 1 && raw.starts_with(&DATA) => {
                let bytes = data[0].clone();
                let narrow = bytes.len() <= usize::from(u8::MAX);
                match raw.len() - bytes.len() - DATA.len() {
                    2 if narrow => (BodyForm::Data, bytes),
                    5 if !narrow => (BodyForm::Data, bytes),
                    5 => (BodyForm::WideData, bytes),
                    _ => (BodyForm::Sections, raw.clone()),
                }
            }
            MessageBody::Value(Value::String(text)) => {
                let bytes = Bytes::copy_from_slice(text.as_bytes());
                match text_section(text) == *raw {
                    true => (BodyForm::Text, bytes),
                    false => (BodyForm::Sections, raw.clone()),
                }
            }
            _ => (BodyForm::Sections, raw.clone()),
        }
    }

    /// How a body is encoded, which somebody may have put in the place of the one that was sent.
    pub(crate) fn fitting(self, body: &Bytes) -> BodyForm {
        let is_section = || match Sections::parse(body) {
            Ok(sections) => sections.body == *body && sections.body().is_ok(),
            Err(_) => false,
        };
        match self {
            BodyForm::Nothing if !body.is_empty() => BodyForm::Data,
            BodyForm::Sections if !is_section() => BodyForm::Data,
            form => form,
        }
    }

    fn number(self) -> u8 {
        match self {
            BodyForm::Data => 0,
            BodyForm::WideData => 1,
            BodyForm::Text => 2,
            BodyForm::Nothing => 3,
            BodyForm::Sections => 4,
        }
    }

    fn numbered(number: u8) -> Option<BodyForm> {
        [BodyForm::Data, BodyForm::WideData, BodyForm::Text, BodyForm::Nothing, BodyForm::Sections]
            .into_iter()
            .find(|form| form.number() == number)
    }

    /// Appends the body of a message.
    pub(crate) fn encode(self, out: &mut BytesMut, body: &[u8]) {
        match self {
            BodyForm::Data => encode_data(out, body),
            BodyForm::WideData => {
                out.put_slice(&DATA);
                out.put_u8(WIDE);
                out.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
                out.put_slice(body);
            }
            BodyForm::Text => match std::str::from_utf8(body) {
                Ok(text) => encode_value(out, &Value::from(text)),
                Err(_) => encode_data(out, body),
            },
            BodyForm::Nothing => {}
            BodyForm::Sections => out.put_slice(body),
        }
    }
}

fn text_section(text: &str) -> BytesMut {
    let mut out = BytesMut::new();
    encode_value(&mut out, &Value::from(text));
    out
}

impl RawSections {
    /// As the value of a property.
    pub(crate) fn to_property(&self) -> PropertyValue {
        let sections = &self.sections;
        let parts = [
            &sections.header,
            &sections.delivery_annotations,
            &sections.message_annotations,
            &sections.properties,
            &sections.application_properties,
            &sections.footer,
        ];
        let mut out = BytesMut::with_capacity(2 + parts.iter().map(|part| part.len()).sum::<usize>());
        out.put_u8(VERSION);
        out.put_u8(self.form.number());
        parts.into_iter().for_each(|part| out.put_slice(part));
        PropertyValue::Binary(out.freeze())
    }

    /// Reads the value of the property; what is not understood is as if it was not there.
    pub(crate) fn of_property(value: &PropertyValue) -> Option<RawSections> {
        let PropertyValue::Binary(bytes) = value else { return None };
        let (version, form) = (*bytes.first()?, *bytes.get(1)?);
        if version != VERSION {
            return None;
        }
        let sections = Sections::parse(&bytes.slice(2..)).ok()?;
        Some(RawSections { form: BodyForm::numbered(form)?, sections })
    }
}
