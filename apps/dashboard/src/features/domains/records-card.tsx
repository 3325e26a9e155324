// Card with a domain's DNS records to copy. Each record is found or missing, and a button starts a new check.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { DomainRecord, OwnDomainView } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button, CopyButton } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { useNow } from '../../ui/hooks.ts';
import { Icon, Spinner } from '../../ui/icon.tsx';
import { Problem } from '../../ui/problem.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Time } from '../../ui/values.tsx';
import { foundText, purposeText, recordHint } from './own-domain-texts.ts';
import { keepDomain, secondsToWait } from './own-domains.ts';

export const RecordsCard = ({ domain }: { readonly domain: OwnDomainView }) => {
  const { checking, wait, check } = useCheck(domain.id);
  // A rejection because of the minimum pause is not shown as an error: the button counts down the pause.
  const error = secondsToWait(checking.error) === null ? checking.error : null;
  return (
    <Card
      title="DNS records"
      description={<LastLook domain={domain} />}
      actions={
        <Button size="small" pending={checking.isPending} disabled={wait > 0} onClick={check}>
          <Icon name="replay" />
          {wait > 0 ? `Check again in ${wait} s` : 'Check now'}
        </Button>
      }
      padded={false}
      footer={recordHint(domain)}
    >
      {error != null && (
        <div className="px-4 pb-4 sm:px-5">
          <Problem title="Couldn't check the records" error={error} />
        </div>
      )}
      <Table
        caption={`DNS records of ${domain.name}`}
        rows={domain.records}
        columns={domain.state === 'pending' ? WAITING : SETTLED}
        rowKey={({ type, name, value }) => `${type} ${name} ${value}`}
      />
      <span role="status" className="sr-only">
        {foundText(domain.records)}
      </span>
    </Card>
  );
};

/** Minimum pause between two manual checks of a domain, set by the platform. */
const PAUSE_SECONDS = 5;

const useCheck = (id: string) => {
  const api = useApi();
  const queries = useQueryClient();
  const [until, setUntil] = useState(0);
  const wait = useNow((now) => Math.max(0, Math.ceil((until - now) / 1000)));
  const pause = (seconds: number): void => setUntil(Date.now() + seconds * 1000);
  const checking = useMutation({
    mutationFn: () => api.checkDomain(id),
    onSuccess: (checked) => {
      pause(PAUSE_SECONDS);
      return keepDomain(queries, checked);
    },
    onError: (error) => pause(secondsToWait(error) ?? 0),
  });
  return { checking, wait, check: () => checking.mutate() };
};

const LastLook = ({ domain: { checked_at: at, state } }: { readonly domain: OwnDomainView }) => (
  <>
    {at === null ? (
      'Not checked yet.'
    ) : (
      <>
        Last checked <Time at={at} />.
      </>
    )}
    {state === 'pending' && ' This page updates automatically.'}
  </>
);

const columnsFor = (isWaiting: boolean): readonly Column<DomainRecord>[] => [
  { key: 'type', header: 'Type', isHead: true, cell: ({ type }) => <code className="font-mono text-sm">{type}</code> },
  { key: 'name', header: 'Name', cell: ({ name }) => <Copied text={name} /> },
  { key: 'value', header: 'Value', cell: ({ value }) => <Copied text={value} /> },
  {
    key: 'purpose',
    header: 'For',
    cell: (record) => <span className="whitespace-nowrap text-muted">{purposeText(record)}</span>,
  },
  { key: 'found', header: 'Status', align: 'end', cell: ({ found }) => <Mark {...{ found, isWaiting }} /> },
];

const WAITING = columnsFor(true);
const SETTLED = columnsFor(false);

const Copied = ({ text }: { readonly text: string }) => (
  <span className="inline-flex min-w-0 items-center gap-1">
    <code className="wrap-anywhere font-mono text-sm">{text}</code>
    <span className="-my-1.5 shrink-0">
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  </span>
);

const Mark = ({ found, isWaiting }: { readonly found: boolean; readonly isWaiting: boolean }) => {
  if (found) {
    return (
      <Badge tone="good">
        <Icon name="check" className="size-3.5" />
        Found
      </Badge>
    );
  }
  return (
    <Badge tone={isWaiting ? 'accent' : 'bad'}>
      {isWaiting ? <Spinner /> : <Icon name="cross" className="size-3.5" />}
      Missing
    </Badge>
  );
};
