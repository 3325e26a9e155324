// What a tunnel is at, from the moment it was let in: its label is only known once its edge has told of it, and of a tls tunnel it is a host.
import { type Kysely, sql } from 'kysely';

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // kind/region/label of the name that decides; null: at none, or at one that is not known yet.
  await sql`alter table tunnel_log add column endpoint text`.execute(db);
  await sql`
    update tunnel_log set endpoint = case
      when protocol = 'http' then 'subdomain//' || regexp_replace(label, '^.*\\.', '')
      when protocol in ('tcp', 'udp') and label ~ '^[0-9]+$' then protocol || '/' || coalesce(region_id, '') || '/' || label
    end
    where unregistered_at is null and label <> ''
  `.execute(db);
  await sql`drop index tunnel_log_open_by_label`.execute(db);
  await sql`
    create index tunnel_log_open_by_endpoint on tunnel_log (endpoint) where unregistered_at is null and endpoint is not null
  `.execute(db);
};
