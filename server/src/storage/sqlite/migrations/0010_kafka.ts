/**
 * How far each bridge has read the partitions of dead-letter topics, and the records that were sent to Kafka
 * for redriven letters and whose outcome is not known yet.
 */
export const kafka = `
create table kafka_positions (
  cluster text not null,
  consumer_group text not null,
  topic text not null,
  partition integer not null,
  topic_id text not null,
  incarnation integer not null,
  next_offset integer,
  epoch integer not null,
  owner text not null,
  updated_at integer not null,
  record_count integer not null,
  primary key (cluster, consumer_group, topic, partition)
) strict, without rowid;
create table kafka_replays (
  letter_id text primary key,
  number integer not null,
  cluster text not null,
  topic text not null,
  partition integer not null,
  record_offset integer not null,
  consumer_group text not null,
  content_hash text not null,
  sent_at integer not null,
  passed_at integer
) strict, without rowid;
create index kafka_replays_unpassed on kafka_replays (cluster, consumer_group, topic, partition, record_offset)
  where passed_at is null;
create index kafka_replays_passed on kafka_replays (cluster, passed_at, letter_id) where passed_at is not null;
create index kafka_replays_sent on kafka_replays (cluster, sent_at, letter_id);
create index kafka_replays_record on kafka_replays (cluster, topic, partition, record_offset);
create index kafka_replays_content on kafka_replays (cluster, content_hash, sent_at);
`
