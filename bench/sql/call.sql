SELECT {call}
