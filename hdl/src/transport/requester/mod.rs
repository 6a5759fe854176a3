//! The requester: everything the send side of a queue pair does.
//!
//! All dynamic state stands in one table behind one pipeline ([`sq_state`]) that takes one event a cycle
//! ([`event`]). The blocks around it bring events and carry out results.

pub mod ack_merge;
pub mod completion_hold;
pub mod decision;
pub mod departures;
pub mod event;
pub mod grant;
pub mod key_work;
pub mod list_walk;
pub mod packet_form;
pub mod part_count;
pub mod recall_filter;
pub mod region_verdict;
pub mod retire;
pub mod round_watch;
pub mod scheduler;
pub mod segmenter;
pub mod send;
pub mod send_queues;
pub mod send_types;
pub mod sq_answer;
pub mod sq_command;
pub mod sq_events;
pub mod sq_feedback;
pub mod sq_pace;
pub mod sq_result;
pub mod sq_retired;
pub mod sq_rules;
pub mod sq_start;
pub mod sq_state;
pub mod sq_terms;
pub mod timer;
pub mod timer_types;
pub mod top;
pub mod track;
pub mod wqe_check;
pub mod wqe_context;
pub mod wqe_fetch;
pub mod wqe_head;
pub mod wqe_start;
