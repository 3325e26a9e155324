// The regions that are there now, and how clients and visitors come to them.
import type { UsageRegion } from '@tunnel/contract';
import { sql } from 'kysely';
import { PLATFORM_BOUNDS } from '../../platform-bounds.ts';
import type { ServiceContext } from '../service-context.ts';

/** A region with several edges is shown by the one that was heard last. */
export const listRegions = async ({ db, clock }: Pick<ServiceContext, 'db' | 'clock'>): Promise<UsageRegion[]> => {
  const heardSince = new Date(clock.now() - PLATFORM_BOUNDS.EDGE_RECENT_MS);
  const { rows } = await sql<UsageRegion>`
    select distinct on (region_id) region_id, region_name as name, location, control, control_tls, http_url
    from edges
    where revoked_at is null and region_id is not null and last_heartbeat_at >= ${heardSince}
    order by region_id, last_heartbeat_at desc`.execute(db);
  return rows;
};
