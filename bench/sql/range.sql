SELECT count(v) FROM {from} WHERE {call}
