//! How a message finds its queue, its workflow and its position, as the queue's definition says.
