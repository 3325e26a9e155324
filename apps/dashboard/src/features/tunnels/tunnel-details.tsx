// The numbers of one tunnel, and where it is.
import { useQuery } from '@tanstack/react-query';
import type { TunnelLogEntry } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { publicAddress } from '../../app/client-commands.ts';
import { regionsQuery } from '../../app/queries.ts';
import { CopyButton } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { momentText } from '../../ui/format.ts';
import { Bytes, Count, Duration, Stat, Time } from '../../ui/values.tsx';
import { visitsMeaning, visitsWord } from './tunnel-row.tsx';

export const TunnelDetails = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <>
    <div className="grid grid-cols-2 gap-3 sm:gap-4 lg:grid-cols-4">
      <Stat
        label={visitsWord(entry.protocol)}
        value={<Count value={entry.request_count} />}
        note={`${visitsMeaning(entry.protocol)}, since it began`}
      />
      <Stat label="Data" value={<Bytes value={entry.bytes_proxied} />} note={dataNote(entry)} />
      <Stat
        label="Duration"
        value={<Duration from={entry.registered_at} until={entry.unregistered_at} />}
        note={<Began entry={entry} />}
      />
      <Stat label="Region" value={entry.region_id ?? '–'} note="The edge that it runs on" />
    </div>
    <Card className="mt-6">
      <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-[auto_minmax(0,1fr)]">
        <Address entry={entry} />
        <Detail name="Label">
          <span className="min-w-0">{entry.label === '' ? 'It has no place yet' : entry.label}</span>
        </Detail>
        <Detail name="Tunnel id" copy={entry.tunnel_id}>
          <code className="break-all font-mono text-sm">{entry.tunnel_id}</code>
        </Detail>
        <Detail name="Started">{momentText(Date.parse(entry.registered_at))}</Detail>
        <Detail name="Ended">
          {entry.unregistered_at === null ? 'It is live' : momentText(Date.parse(entry.unregistered_at))}
        </Detail>
      </dl>
    </Card>
  </>
);

const dataNote = ({ protocol }: TunnelLogEntry): string => {
  if (protocol === 'udp') return 'Payload of datagrams, both ways';
  return protocol === 'p2p'
    ? 'Through the relay, both ways. Direct traffic is not billed.'
    : 'Both ways, without our framing and TLS';
};

const Began = ({ entry }: { readonly entry: TunnelLogEntry }) =>
  entry.unregistered_at === null ? (
    <>
      Started <Time at={entry.registered_at} />
    </>
  ) : (
    <>
      Ended <Time at={entry.unregistered_at} />
    </>
  );

const Address = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const regions = useQuery(regionsQuery(useApi()));
  const address = publicAddress(
    entry,
    regions.data?.find(({ region_id }) => region_id === entry.region_id),
  );
  if (address === null) return regions.isPending && entry.protocol !== 'p2p' ? <PendingAddress /> : null;
  const isOpen = entry.unregistered_at === null;
  return (
    <Detail name="Public address" copy={address}>
      {isOpen && entry.protocol === 'http' ? (
        <a
          href={address}
          target="_blank"
          rel="noreferrer"
          className="break-all rounded-sm text-accent underline underline-offset-2"
        >
          {address}
        </a>
      ) : (
        <span className={isOpen ? 'break-all' : 'break-all text-muted'}>{address}</span>
      )}
    </Detail>
  );
};

/** Its place is kept, so that what is below does not move. */
const PendingAddress = () => (
  <Detail name="Public address">
    <Skeleton className="h-5 w-56" />
  </Detail>
);

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
