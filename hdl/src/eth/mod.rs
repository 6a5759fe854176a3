//! Ethernet side of the engine: received frames are parsed, checked and buffered, and pauses asked for; the lanes of frames to send meet; what is not
//! RoCEv2 goes to the host and comes from it.
pub mod axis_mux;
pub mod exception_arm;
pub mod exception_buffer;
pub mod exception_class;
pub mod exception_rx;
pub mod exception_tx;
pub mod exception_types;
pub mod exception_writes;
pub mod exceptions;
pub mod frame_mux;
pub mod gid_table;
pub mod ipv4_checksum;
pub mod loopback;
pub mod packet_buffer;
pub mod pause_out;
pub mod return_path;
pub mod rx_extent;
pub mod rx_fields;
pub mod rx_front;
pub mod rx_header;
pub mod rx_link;
pub mod rx_parse;
pub mod tx_back;
