// Card with rarely needed details of a tunnel: ID, times, region, and whether the address is reserved for the account.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { OwnDomainView, Reservation, TunnelLogEntry } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { CopyButton } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Day, Moment } from '../../ui/values.tsx';
import { domainOf, domainsQuery } from '../domains/own-domains.ts';
import { keptAfterUse, reservationOf, reservationsQuery } from '../names/reservations.ts';

export const TunnelDetails = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <Card title="Details">
    <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-[auto_minmax(0,1fr)]">
      <Detail name="Tunnel ID" copy={entry.tunnel_id}>
        <code className="break-all font-mono text-sm">{entry.tunnel_id}</code>
      </Detail>
      <Detail name="Started">
        <Moment at={entry.registered_at} />
      </Detail>
      {entry.unregistered_at !== null && (
        <Detail name="Ended">
          <Moment at={entry.unregistered_at} />
        </Detail>
      )}
      {entry.region_id !== null && <Detail name="Region">{entry.region_id}</Detail>}
      {entry.protocol !== 'p2p' && <KeptAddress entry={entry} />}
    </dl>
  </Card>
);

/**
 * Whether the tunnel's address is reserved. A placeholder is shown while loading. Load errors are not shown here, because the Names page
 * shows them.
 */
const KeptAddress = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const api = useApi();
  const { data: list, isError } = useQuery(reservationsQuery(api));
  const domains = useQuery(domainsQuery(api));
  const kept = list === undefined ? undefined : reservationOf(entry, list);
  const domain = domains.data === undefined ? undefined : domainOf(entry, domains.data);
  if (domain !== undefined) return <OwnDomain domain={domain} />;
  return (
    <Detail name="Address">
      {(list === undefined && !isError) || domains.isPending ? (
        <Skeleton className="h-5 w-40" />
      ) : (
        <span>
          <KeptText kept={kept} />{' '}
          <Link to="/names" className="whitespace-nowrap rounded-sm text-accent underline underline-offset-2">
            {kept === undefined || kept.state === 'reserved' ? 'See Names' : 'Reserve'}
          </Link>
        </span>
      )}
    </Detail>
  );
};

const OwnDomain = ({ domain: { id, name, state } }: { readonly domain: OwnDomainView }) => (
  <Detail name="Domain">
    <span className="wrap-anywhere">
      {name}
      {state !== 'verified' && ', no longer verified'}.{' '}
      <Link
        to="/domains/$id"
        params={{ id }}
        className="whitespace-nowrap rounded-sm text-accent underline underline-offset-2"
      >
        See DNS records and certificate
      </Link>
    </span>
  </Detail>
);

const KeptText = ({ kept }: { readonly kept: Reservation | undefined }) => {
  if (kept === undefined) return <>Not reserved.</>;
  if (kept.state === 'reserved') return <>Reserved.</>;
  if (kept.expires_at === null) {
    const after = keptAfterUse(kept);
    return <>Held while in use{after !== '' && ` and for ${after} after`}.</>;
  }
  return (
    <>
      Kept until <Day at={kept.expires_at} />.
    </>
  );
};

interface DetailProps {
  readonly name: string;
  readonly copy?: string;
  readonly children: ReactNode;
}

const Detail = ({ name, copy, children }: DetailProps) => (
  <>
    <dt className="text-muted">{name}</dt>
    <dd className="flex min-h-[1.375rem] min-w-0 items-center gap-1 max-sm:-mt-2.5">
      {children}
      {copy !== undefined && (
        <span className="-my-1.5">
          <CopyButton text={copy} label={`Copy: ${name}`} />
        </span>
      )}
    </dd>
  </>
);
