//! All tables as they are in memory.

use crate::engine::store::base::Base;
use crate::engine::store::flush::AnyMemtable;
use crate::engine::store::flush::WholeTable;
use crate::engine::store::memtable::Memtable;
use crate::engine::store::message_slots::MessageSlots;
use crate::engine::store::schema;
use crate::engine::store::table_book::TableBook;
use crate::engine::store::workflow_slots::WorkflowSlots;
use crate::error::Fault;
use crate::limits;

/// What holds a table: of one whose rows are in slots, all but these.
macro_rules! holder_of {
    ($table:ident) => { Memtable<schema::$table> };
    ($table:ident, $slots:ident, $row:ident) => { TableBook<schema::$row> };
}

/// A table with its rows of the window.
macro_rules! whole_table {
    ($memtables:ident, $field:ident) => {
        WholeTable { groups: &mut $memtables.$field.groups, book: &mut $memtables.$field.book }
    };
    ($memtables:ident, $field:ident, $slots:ident, $row:ident) => {
        WholeTable::<schema::$row, _> { groups: &mut $memtables.$slots, book: &mut $memtables.$field }
    };
}

/// Makes the memtables of all tables.
macro_rules! memtables {
    ($($number:literal $field:ident $table:ident: $rows:ident, $prefix:ty, $key:ty => $value:ty $(, in $slots:ident as $row:ident)?;)*) => {
        /// One memtable for each table whose rows go through the journal.
        pub(crate) struct Memtables {
            pub(crate) of_workflows: WorkflowSlots,
            pub(crate) of_messages: MessageSlots,
            /// Rows that trials have changed since all of this was tidied up: what was made room for is there still.
            pub(crate) taken_back: usize,
            $(pub(crate) $field: holder_of!($table $(, $slots, $row)?),)*
        }

        impl Memtables {
            /// Empty memtables before the tables of a file.
            pub(crate) fn new(base: &Base<'_>) -> Result<Memtables, Fault> {
                let (of_workflows, of_messages) = Default::default();
                $(let $field = <holder_of!($table $(, $slots, $row)?)>::new(base)?;)*
                Ok(Memtables { of_workflows, of_messages, taken_back: 0, $($field,)* })
            }

            /// Does something with every memtable, in the order of the tables' numbers.
            pub(crate) fn each(&mut self, with: &mut dyn FnMut(&mut dyn AnyMemtable)) {
                $(with(&mut whole_table!(self, $field $(, $slots, $row)?));)*
            }

            /// Does something with the memtable of a table's number; `None` when no table has it.
            pub(crate) fn numbered<R>(
                &mut self,
                number: u8,
                with: impl FnOnce(&mut dyn AnyMemtable) -> R,
            ) -> Option<R> {
                match number {
                    $($number => Some(with(&mut whole_table!(self, $field $(, $slots, $row)?))),)*
                    _ => None,
                }
            }
        }
    };
}

schema::each_table!(memtables);

impl Memtables {
    /// Ends the generation that is being filled with the commit at a position.
    pub(crate) fn end_generation(&mut self, position: u64) {
        self.each(&mut |memtable| memtable.end_generation(position));
        self.tidy();
    }

    /// Begins the turn whose commit has this position.
    pub(crate) fn begin_turn(&mut self, position: u64) {
        // What trials leave is no reason to end a generation, and not within a turn, which knows where its rows are.
        if self.taken_back > limits::TAKEN_BACK_MAX {
            self.tidy();
        }
        self.each(&mut |memtable| memtable.begin_turn(position));
    }

    fn tidy(&mut self) {
        self.each(&mut |memtable| memtable.tidy());
        self.of_workflows.tidy();
        self.of_messages.tidy();
        self.taken_back = 0;
    }
}
