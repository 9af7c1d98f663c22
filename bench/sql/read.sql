SELECT count({call}) FROM {from}
