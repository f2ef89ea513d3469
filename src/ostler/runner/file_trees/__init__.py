"""File trees that somebody else may be changing: walked, copied, packed and unpacked without ever leaving them."""
