// Panel with the rules of a live tunnel: each rule in plain words, how often it matched and answered requests, and the sign-in provider.
// The code is loaded when the panel is first shown.
import { useQuery } from '@tanstack/react-query';
import type { ShownProtocol, ShownRule, TunnelLogEntry, TunnelPolicy } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { Badge } from '../../ui/badge.tsx';
import { SkeletonLines } from '../../ui/card.tsx';
import { CommandLine } from '../../ui/empty-state.tsx';
import { plural } from '../../ui/format.ts';
import { type Column, Table } from '../../ui/table.tsx';
import { Count } from '../../ui/values.tsx';
import { StaleNotice } from './health-panel.tsx';
import { loginText, operatorText } from './policy-text.ts';
import { policyQuery } from './queries.ts';

export const PolicyPanel = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const policy = useQuery(policyQuery(useApi(), entry));
  return (
    <LoadedCard
      title="Access and rules"
      description="Rules run from top to bottom before a request reaches your service. The first rule that responds ends the request."
      query={policy}
      problem="Couldn't load the rules"
      pending={
        <div className="px-4 pb-4 sm:px-5 sm:pb-5">
          <SkeletonLines count={2} />
        </div>
      }
    >
      {(known) => (
        <>
          <div className="px-4 sm:px-5">
            <StaleNotice query={policy} />
          </div>
          {known === null ? <NoRules protocol={entry.protocol} /> : <Rules policy={known} />}
        </>
      )}
    </LoadedCard>
  );
};

/** Example commands that restrict access, by protocol of the tunnel. */
const COMMANDS: Readonly<Partial<Record<ShownProtocol, string>>> = {
  http: 'tunnel http 3000 --basic-auth-file users.txt',
  tcp: 'tunnel tcp 5432 --allow-cidr 203.0.113.0/24',
  udp: 'tunnel udp 5353 --allow-cidr 203.0.113.0/24',
};

const NoRules = ({ protocol }: { readonly protocol: ShownProtocol }) => {
  const command = COMMANDS[protocol];
  return (
    <div className="space-y-3 px-4 pb-4 sm:px-5 sm:pb-5">
      <p>
        <Badge tone="warn">Open to everyone</Badge>{' '}
        <span className="text-muted">Anyone with the URL can visit. To restrict access, add a rule:</span>
      </p>
      {command !== undefined && <CommandLine command={command} label="Copy the command" />}
    </div>
  );
};

const COLUMNS: readonly Column<ShownRule>[] = [
  {
    key: 'index',
    header: 'Rule',
    cell: ({ index }) => <span className="text-muted">{index}</span>,
    className: 'sm:w-14',
  },
  {
    key: 'summary',
    header: 'Effect',
    isHead: true,
    cell: ({ name, summary }) => (
      <span className="wrap-anywhere inline-block">
        {name !== null && <span className="block font-medium">{name}</span>}
        <span className={name === null ? '' : 'font-normal text-muted'}>{summary}</span>
      </span>
    ),
  },
  { key: 'action', header: 'Action', cell: ({ action }) => <code className="font-mono text-sm">{action}</code> },
  { key: 'matched', header: 'Matched', align: 'end', cell: ({ matched }) => <Count value={matched} /> },
  { key: 'answered', header: 'Answered', align: 'end', cell: ({ answered }) => <Count value={answered} /> },
];

const Rules = ({ policy }: { readonly policy: TunnelPolicy }) => {
  const login = loginText(policy);
  const operator = operatorText(policy.operator_rules);
  return (
    <>
      <dl className="grid gap-x-8 gap-y-2 px-4 pb-4 sm:grid-cols-[auto_minmax(0,1fr)] sm:px-5">
        {login !== null && <Fact name="Sign-in">{login}</Fact>}
        <Fact name="Revision">
          {policy.revision} <code className="font-mono text-muted text-sm">{policy.hash_short}</code>
        </Fact>
        {operator !== null && <Fact name="Operator">{operator}</Fact>}
      </dl>
      <Table
        caption="Rules in order of execution"
        columns={COLUMNS}
        rows={policy.rules}
        rowKey={({ index }) => `${index}`}
      />
      <p role="status" className="border-line border-t px-4 py-2 text-muted text-sm sm:px-5">
        {plural(policy.rules.length, 'rule')}. Counts restart when the rules change. Requests answered by a rule are not
        billed.
      </p>
    </>
  );
};

const Fact = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <>
    <dt className="text-muted">{name}</dt>
    <dd className="wrap-anywhere min-w-0 max-sm:-mt-1.5">{children}</dd>
  </>
);
