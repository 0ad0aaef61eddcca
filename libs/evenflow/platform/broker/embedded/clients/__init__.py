"""Consumer, producer and administration of the embedded log, shaped like aiokafka's."""
