// Adds the addresses at which clients and visitors reach an edge, and an index of the tunnel log by protocol.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['tunnel_log'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  await sql`
    alter table edges
      -- From its heartbeats; empty: it has not told.
      add column control text not null default '',
      add column control_tls boolean not null default false,
      add column http_url text not null default ''
  `.execute(db);
  // Without this index, searching for a protocol that an account rarely uses would scan the account's whole log.
  await sql`
    create index tunnel_log_of_protocol on tunnel_log (user_id, protocol, registered_at desc, id desc)
  `.execute(db);
  // The index has the order of the log, so that open tunnels are read from the index only, however long the log is.
  await sql`drop index tunnel_log_open_of_user`.execute(db);
  await sql`
    create index tunnel_log_open_of_user on tunnel_log (user_id, registered_at desc, id desc) where unregistered_at is null
  `.execute(db);
};
