// The numbers of one tunnel, its name, its computer and its times.
import type { TunnelLogEntry } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { CopyButton } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Bytes, Count, Duration, Moment, Stat, Time } from '../../ui/values.tsx';
import { visitsMeaning, visitsWord } from './tunnel-row.tsx';

export const TunnelDetails = ({ entry }: { readonly entry: TunnelLogEntry }) => (
  <>
    <div className="grid grid-cols-2 gap-3 sm:gap-4 lg:grid-cols-4">
      <Stat
        label={visitsWord(entry.protocol)}
        value={<Count value={entry.request_count} />}
        note={visitsMeaning(entry.protocol)}
      />
      <Stat label="Data" value={<Bytes value={entry.bytes_proxied} />} note={dataNote(entry)} />
      <Stat
        label="Duration"
        value={<Duration from={entry.registered_at} until={entry.unregistered_at} />}
        note={<Began entry={entry} />}
      />
      <Stat label="Region" value={entry.region_id ?? '–'} note="Edge location" />
    </div>
    <Card className="mt-6">
      <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-[auto_minmax(0,1fr)]">
        {entry.name !== undefined && <Detail name="Name">{entry.name}</Detail>}
        {entry.client_name !== undefined && <Detail name="Computer">{entry.client_name}</Detail>}
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
      </dl>
    </Card>
  </>
);

const dataNote = ({ protocol }: TunnelLogEntry): string =>
  protocol === 'p2p' ? 'Through the relay. Direct traffic is free.' : 'In and out';

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
