//! Ethernet side of the engine: received frames are parsed, checked and buffered; the lanes of frames to send meet.
pub mod frame_mux;
pub mod gid_table;
pub mod ipv4_checksum;
pub mod loopback;
pub mod packet_buffer;
pub mod rx_extent;
pub mod rx_fields;
pub mod rx_front;
pub mod rx_header;
pub mod rx_link;
pub mod rx_parse;
