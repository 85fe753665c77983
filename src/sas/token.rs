//! The text of a token: `SharedAccessSignature sr=..&sig=..&se=..&skn=..`.

use percent_encoding::percent_decode_str;

use crate::limits;
use crate::sas::refusal::SignatureRefusal;

/// What every token begins with.
const SCHEME: &str = "SharedAccessSignature ";

/// A token, read but not believed.
#[derive(Debug)]
pub(crate) struct SasToken<'a> {
    /// The resource, as it is signed.
    pub(crate) resource: &'a str,
    /// The end of its validity in seconds since 1970, as it is signed.
    pub(crate) expiry: &'a str,
    /// The signature in base64.
    pub(crate) signature: String,
    /// The name of the key.
    pub(crate) key: String,
}

impl<'a> SasToken<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<SasToken<'a>, SignatureRefusal> {
        if text.len() > limits::TOKEN_BYTES_MAX {
            return Err(SignatureRefusal::Malformed);
        }
        let fields = text.trim().strip_prefix(SCHEME).ok_or(SignatureRefusal::Malformed)?;
        let mut found = [None; 4];
        for field in fields.split('&') {
            let (name, value) = field.split_once('=').ok_or(SignatureRefusal::Malformed)?;
            let place = ["sr", "se", "sig", "skn"].iter().position(|known| *known == name);
            let Some(place) = place else { continue };
            if found[place].replace(value).is_some() {
                return Err(SignatureRefusal::Malformed);
            }
        }
        let [Some(resource), Some(expiry), Some(signature), Some(key)] = found else {
            return Err(SignatureRefusal::Malformed);
        };
        Ok(SasToken { resource, expiry, signature: decoded(signature)?, key: decoded(key)? })
    }

    /// What was signed.
    pub(crate) fn signed(&self) -> String {
        format!("{}\n{}", self.resource, self.expiry)
    }

    /// The resource as it is meant.
    pub(crate) fn resource(&self) -> Result<String, SignatureRefusal> {
        decoded(self.resource)
    }

    /// The end of its validity.
    pub(crate) fn expiry_seconds(&self) -> Result<u64, SignatureRefusal> {
        self.expiry.parse().map_err(|_| SignatureRefusal::Malformed)
    }
}

fn decoded(text: &str) -> Result<String, SignatureRefusal> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| SignatureRefusal::Malformed)?;
    Ok(text.into_owned())
}
