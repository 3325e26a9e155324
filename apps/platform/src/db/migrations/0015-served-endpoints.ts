// Adds the endpoint (name or port) of a tunnel, known from the moment the tunnel is accepted. The label is not sufficient: it is unknown
// until the edge reports it, and for a tls tunnel it is a host.
import { type Kysely, sql } from 'kysely';

export const oldestVersion = '0.1.0';

export const longLocks = ['tunnel_log'];

export const up = async (db: Kysely<unknown>): Promise<void> => {
  // Endpoint as kind/region/label of the decisive name. Null if the tunnel has no endpoint, or an endpoint not known yet.
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
