//! Fields that are seldom set: as long as they are blank, they take no more than a pointer.

use std::fmt;
use std::ops::Deref;
use std::ops::DerefMut;
use std::sync::Arc;

use serde::Deserialize;
use serde::Deserializer;
use serde::Serialize;
use serde::Serializer;

use crate::header::Headers;
use crate::header::Properties;

/// What can be blank.
pub(crate) trait Blank: Clone + PartialEq + 'static {
    /// With nothing in it.
    fn blank() -> &'static Self;
}

/// Fields that take room of their own only once one of them was set, so that a record of which the window keeps many is small
/// and quickly copied: copies share the fields until one of them is changed. Their bytes are those of the fields.
#[derive(Clone)]
pub(crate) struct Seldom<T>(Option<Arc<T>>);

impl<T> Default for Seldom<T> {
    fn default() -> Seldom<T> {
        Seldom(None)
    }
}

impl<T: Blank> Seldom<T> {
    /// Gives room back that nothing is in.
    pub(crate) fn trim(&mut self) {
        self.0.take_if(|fields| **fields == *T::blank());
    }

    /// The fields, if any of them was set.
    #[inline]
    pub(crate) fn if_set(&self) -> Option<&T> {
        self.0.as_deref()
    }

    /// The fields themselves.
    pub(crate) fn into_inner(self) -> T {
        self.0.map_or_else(|| T::blank().clone(), Arc::unwrap_or_clone)
    }
}

impl<T: Blank> From<T> for Seldom<T> {
    fn from(fields: T) -> Seldom<T> {
        // Looked at before room is made: nearly always there is nothing to keep.
        Seldom((fields != *T::blank()).then(|| Arc::new(fields)))
    }
}

impl<T: Blank> Deref for Seldom<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::blank())
    }
}

impl<T: Blank> DerefMut for Seldom<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(self.0.get_or_insert_with(|| Arc::new(T::blank().clone())))
    }
}

impl<T: Blank + fmt::Debug> fmt::Debug for Seldom<T> {
    /// What is equal looks equal, whether or not it takes room.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if **self == *T::blank() { f.write_str("blank") } else { (**self).fmt(f) }
    }
}

impl<T: Blank> PartialEq for Seldom<T> {
    fn eq(&self, other: &Seldom<T>) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) if Arc::ptr_eq(one, other) => true,
            _ => **self == **other,
        }
    }
}

impl<T: Blank + Eq> Eq for Seldom<T> {}

impl<T: Blank + Serialize> Serialize for Seldom<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de, T: Blank + Deserialize<'de>> Deserialize<'de> for Seldom<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seldom<T>, D::Error> {
        Ok(T::deserialize(deserializer)?.into())
    }
}

static NO_HEADERS: Headers = Headers {
    subject: None,
    content_type: None,
    correlation_id: None,
    reply_to: None,
    properties: Properties::new(),
};

impl Blank for Headers {
    fn blank() -> &'static Headers {
        &NO_HEADERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_blank_takes_no_room_and_has_the_same_bytes() {
        let mut headers = Seldom::from(Headers::default());
        assert!(headers.0.is_none() && *headers == Headers::default());
        let bytes = postcard::to_stdvec(&headers).unwrap();
        assert_eq!(bytes, postcard::to_stdvec(&Headers::default()).unwrap());
        assert!(postcard::from_bytes::<Seldom<Headers>>(&bytes).unwrap().0.is_none());
        headers.subject = Some("s".to_owned());
        let bytes = postcard::to_stdvec(&headers).unwrap();
        assert_eq!(bytes, postcard::to_stdvec(&headers.clone().into_inner()).unwrap());
        assert_eq!(postcard::from_bytes::<Seldom<Headers>>(&bytes).unwrap(), headers);
        headers.subject = None;
        assert!(headers.0.is_some() && headers == Seldom::default());
        assert_eq!(format!("{headers:?}"), format!("{:?}", Seldom::<Headers>::default()));
        headers.trim();
        assert!(headers.0.is_none());
    }
}
