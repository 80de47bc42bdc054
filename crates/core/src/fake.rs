//! A backend in memory, with faults to order.
