/**
 * How far each bridge has read the partitions of dead-letter topics, and the records that were sent to Kafka
 * for redriven letters and whose outcome is not known yet.
 */
export const kafka = `
create table redrive.kafka_positions (
  cluster text collate "C" not null,
  consumer_group text collate "C" not null,
  topic text collate "C" not null,
  partition integer not null,
  topic_id text collate "C" not null,
  incarnation integer not null,
  next_offset bigint,
  epoch bigint not null,
  owner text collate "C" not null,
  updated_at bigint not null,
  record_count bigint not null,
  primary key (cluster, consumer_group, topic, partition)
) with (fillfactor = 50);
create table redrive.kafka_replays (
  letter_id text collate "C" primary key,
  number integer not null,
  cluster text collate "C" not null,
  topic text collate "C" not null,
  partition integer not null,
  record_offset bigint not null,
  consumer_group text collate "C" not null,
  content_hash text collate "C" not null,
  sent_at bigint not null,
  passed_at bigint
);
create index kafka_replays_unpassed on redrive.kafka_replays
  (cluster, consumer_group, topic, partition, record_offset) where passed_at is null;
create index kafka_replays_passed on redrive.kafka_replays (cluster, passed_at, letter_id)
  where passed_at is not null;
create index kafka_replays_sent on redrive.kafka_replays (cluster, sent_at, letter_id);
create index kafka_replays_record on redrive.kafka_replays (cluster, topic, partition, record_offset);
create index kafka_replays_content on redrive.kafka_replays (cluster, content_hash, sent_at);
`
