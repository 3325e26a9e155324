// Table with the members of a group. A very large group shows 50 members at first, and more on request.
import { Link } from '@tanstack/react-router';
import type { GroupMemberSummary, GroupProtocol, GroupSummary } from '@tunnel/contract';
import { memo, useMemo, useState } from 'react';
import { originText } from '../../shared/tunnel-address.ts';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { countText, percentText, plural } from '../../ui/format.ts';
import { Bar, Bytes, Time } from '../../ui/values.tsx';
import { alertText, failureText, servedText, sharesOf, shareText } from './pools.ts';

const SHOWN_AT_ONCE = 50;

const HEADS = [
  { name: 'Member', width: 'w-[25%]' },
  { name: 'Health', width: 'w-[15%]' },
  { name: 'Check', width: 'w-[9%]' },
  {
    name: 'Share',
    width: 'w-[22%]',
    note: 'chosen at random',
    title:
      'Share of the traffic served by the current members. Every new connection goes to a healthy member, chosen at random.',
  },
  { name: 'Data', width: 'w-[9%]', title: 'Bytes in and out since the member joined', end: true },
  { name: 'Outages', width: 'w-[9%]', title: 'How often the member became unhealthy since joining', end: true },
  { name: 'Connected', width: 'w-[11%]', end: true },
] as const satisfies readonly { name: string; width: string; note?: string; title?: string; end?: boolean }[];

export const MemberTable = ({ group }: { readonly group: GroupSummary }) => {
  const [limit, setLimit] = useState(SHOWN_AT_ONCE);
  const shares = useMemo(() => sharesOf(group.members), [group.members]);
  const left = group.members.length - limit;
  return (
    <>
      <div className="overflow-x-auto">
        <table className="cards w-full border-collapse text-left sm:min-w-4xl sm:table-fixed">
          <caption className="sr-only">Members of the group {group.name}</caption>
          <thead>
            <tr className="border-line border-y bg-page">
              {HEADS.map((head) => (
                <th
                  key={head.name}
                  scope="col"
                  title={'title' in head ? head.title : undefined}
                  className={`px-4 py-2 font-medium text-muted text-sm first:pl-5 last:pr-5 ${head.width} ${'end' in head ? 'text-right' : ''}`}
                >
                  {head.name}
                  {'note' in head && <span className="block font-normal text-xs">{head.note}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody className="divide-y divide-line">
            {group.members.slice(0, limit).map((member, index) => (
              <MemberRow key={member.tunnel_id} member={member} share={shares[index] ?? 0} protocol={group.protocol} />
            ))}
          </tbody>
        </table>
      </div>
      {left > 0 && (
        <div className="border-line border-t px-4 py-2 sm:px-5">
          <Button size="small" kind="quiet" onClick={() => setLimit(limit + SHOWN_AT_ONCE)}>
            Show {plural(Math.min(left, SHOWN_AT_ONCE), 'more member')} of {countText(left)}
          </Button>
        </div>
      )}
    </>
  );
};

interface MemberRowProps {
  readonly member: GroupMemberSummary;
  readonly share: number;
  readonly protocol: GroupProtocol;
}

const CELL = 'sm:px-4 sm:py-2.5 sm:first:pl-5 sm:last:pr-5';

/** Row of a member. Memoized, so that the row renders only when its data changes. */
const MemberRow = memo(({ member, share, protocol }: MemberRowProps) => (
  <tr className="hover:bg-page">
    {/* oxlint-disable-next-line jsx-a11y/control-has-associated-label -- no control: the link in it has its text */}
    <th scope="row" data-label="Member" className={`${CELL} font-normal`}>
      <span className="min-w-0">
        <Link
          to="/tunnels/$id"
          params={{ id: member.tunnel_id }}
          title={member.tunnel_id}
          className="block break-all rounded-sm font-medium text-accent hover:underline"
        >
          {originText(member) || member.tunnel_id}
        </Link>
        <span className="block break-all text-muted text-sm" title="Address of the client">
          {member.client_addr}
        </span>
      </span>
    </th>
    <td data-label="Health" className={CELL}>
      <Health member={member} />
    </td>
    <td data-label="Check" className={CELL}>
      <Check member={member} />
    </td>
    <td data-label="Share" className={CELL}>
      <span className="block w-44 max-w-full sm:w-full">
        <span className="flex items-baseline justify-between gap-3 text-sm">
          <span className="whitespace-nowrap font-medium">{percentText(share)}</span>
          <span className="text-right text-muted">{servedText(member.request_count, protocol)}</span>
        </span>
        <Bar
          share={share}
          label={shareText(share, member.request_count, protocol)}
          tone={member.healthy ? 'accent' : 'neutral'}
          className="mt-1"
        />
      </span>
    </td>
    <td data-label="Data" className={`${CELL} text-right`}>
      <Bytes value={member.bytes_proxied} />
    </td>
    <td data-label="Outages" className={`${CELL} text-right`}>
      {countText(member.total_health_failures)}
    </td>
    <td data-label="Connected" className={`${CELL} text-right`}>
      <Time at={member.connected_since} />
    </td>
  </tr>
));

const Health = ({ member }: { readonly member: GroupMemberSummary }) => {
  if (member.healthy) {
    return (
      <Badge tone="good" dot title="Receives new connections">
        Healthy
      </Badge>
    );
  }
  return (
    <span className="inline-block min-w-0">
      <Badge tone="bad" title="Receives no new connections until the health check passes">
        ✕ Unhealthy
      </Badge>
      <span className="wrap-anywhere mt-0.5 block text-muted text-xs">{failureText(member)}</span>
    </span>
  );
};

const Alert = ({ last }: { readonly last: GroupMemberSummary['last_alert'] }) => (
  <span
    className={`block whitespace-normal text-xs ${last === undefined || last.outcome === 'delivered' ? 'text-muted' : 'text-bad'}`}
    title="We send an alert to the member's webhook when no member is healthy."
  >
    {alertText(last)}
    {last !== undefined && (
      <span className="block text-muted">
        <Time at={last.at} />
      </span>
    )}
  </span>
);

const Check = ({ member }: { readonly member: GroupMemberSummary }) => (
  <span className="inline-block whitespace-nowrap">
    {member.health_check_kind === undefined ? (
      <span title="Without a health check, a connected member always counts as healthy.">None</span>
    ) : (
      <span title="The client checks the local service.">{member.health_check_kind.toUpperCase()}</span>
    )}
    {member.has_alert_webhook && <Alert last={member.last_alert} />}
  </span>
);
