// Card of a group. Name and health are always visible, the members only if the card is open.
import type { GroupSummary } from '@tunnel/contract';
import { memo, useId } from 'react';
import { protocolText, type TunnelAddress } from '../../shared/tunnel-address.ts';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Badge } from '../../ui/badge.tsx';
import { classNames } from '../../ui/class-names.ts';
import { countText, durationText, plural } from '../../ui/format.ts';
import { useNow } from '../../ui/hooks.ts';
import { Icon } from '../../ui/icon.tsx';
import { Bar } from '../../ui/values.tsx';
import { MemberTable } from './member-table.tsx';
import { isDown, poolKey } from './pools.ts';

export interface PoolCardProps {
  readonly group: GroupSummary;
  readonly open: boolean;
  readonly setOpen: (key: string, open: boolean) => void;
  /** Public address of the group. Null if unknown. */
  readonly address: TunnelAddress | null;
  /** Time of the region's last response in ms since the epoch. Null if the data is current. */
  readonly staleSince: number | null;
}

const isSame = (before: PoolCardProps, now: PoolCardProps): boolean =>
  before.group === now.group &&
  before.open === now.open &&
  before.setOpen === now.setOpen &&
  before.staleSince === now.staleSince &&
  before.address?.text === now.address?.text;

/** Card of a group. Memoized with a custom comparison, because the address is a new object on every render of the page. */
export const PoolCard = memo(({ group, open, setOpen, address, staleSince }: PoolCardProps) => {
  const id = useId();
  return (
    <article
      aria-labelledby={`${id}-name`}
      className={classNames(
        'overflow-hidden rounded-lg border bg-surface',
        isDown(group) ? 'border-bad' : 'border-line',
      )}
    >
      <div className="flex flex-wrap items-center gap-x-6 gap-y-2 px-4 py-3 sm:px-5">
        <h2 className="-ml-1.5 min-w-0 max-w-full">
          <button
            type="button"
            aria-expanded={open}
            aria-controls={`${id}-members`}
            onClick={() => setOpen(poolKey(group), !open)}
            className="flex max-w-full items-center gap-2 rounded-md px-1.5 py-1 text-left hover:bg-sunken"
          >
            <Icon name={open ? 'chevron' : 'right'} className="size-4 text-muted" />
            <span id={`${id}-name`} className="min-w-0 wrap-anywhere font-semibold">
              {group.name}
            </span>
          </button>
        </h2>
        <PoolLocation {...{ group, address, staleSince }} />
        <div className="sm:ml-auto">
          <HealthMarks group={group} />
        </div>
        <PoolNumbers group={group} />
      </div>
      {isDown(group) && <DownNotice members={group.member_count} />}
      <div id={`${id}-members`} hidden={!open}>
        {open && <MemberTable group={group} />}
      </div>
    </article>
  );
}, isSame);

const PoolLocation = ({ group, address, staleSince }: Pick<PoolCardProps, 'group' | 'address' | 'staleSince'>) => (
  <span className="flex min-w-0 flex-wrap items-center gap-x-2 gap-y-1 text-muted text-sm">
    <Badge>{protocolText(group.protocol)}</Badge>
    <Address {...{ group, address }} />
    <span>
      in region <span className="text-ink">{group.region_id}</span>
    </span>
    {staleSince !== null && <StaleBadge since={staleSince} />}
  </span>
);

const Address = ({ group, address }: Pick<PoolCardProps, 'group' | 'address'>) => {
  if (address === null) return <span className="break-all text-ink">{group.label}</span>;
  const { text, href } = address;
  return (
    <span className="inline-flex min-w-0 items-center gap-1">
      {href === null ? (
        <span className="break-all text-ink">{text}</span>
      ) : (
        <a href={href} target="_blank" rel="noreferrer" className="break-all rounded-sm text-accent hover:underline">
          {text}
        </a>
      )}
      <AddressTools text={text} href={null} />
    </span>
  );
};

const StaleBadge = ({ since }: { readonly since: number }) => {
  const age = useNow((now) => durationText(now - since));
  return (
    <Badge tone="warn" title="The region of this group did not answer.">
      As of {age} ago
    </Badge>
  );
};

/** Notice that a group has no healthy members, as a box with an icon and text, so that the message does not depend on color. */
const DownNotice = ({ members }: { readonly members: number }) => (
  <p className="flex gap-2.5 border-bad/30 border-y bg-bad-soft px-4 py-2.5 sm:px-5">
    <Icon name="warning" className="mt-[3px] size-4 text-bad" />
    <span>
      <strong className="font-semibold text-bad">No healthy members.</strong>{' '}
      {members === 1 ? 'The only member fails' : `All ${countText(members)} members fail`} the health check. Visitors
      get a 502 error until a member recovers.
    </span>
  </p>
);

const PoolNumbers = ({ group }: { readonly group: GroupSummary }) => (
  <p className="basis-full text-muted text-sm">
    <span title="Since the group was created, including former members">
      {plural(group.total_dispatches, 'connection')}
    </span>
    <Dot />
    <span title="How often a member became unhealthy since the group was created, including former members">
      {plural(group.total_health_failures, 'outage')}
    </span>
    <Dot />
    <span title="First 8 digits of the group key’s SHA-256">
      key <span className="font-mono">{group.key_hash_short}</span>
    </span>
  </p>
);

const Dot = () => (
  <span aria-hidden="true" className="px-1.5">
    ·
  </span>
);

/** Largest group shown as a row of marks. Larger groups have a bar instead. */
const MARKS_MAX = 12;

/** Health of a group: a filled or hollow mark per member, and the number of healthy members in words. */
const HealthMarks = ({ group }: { readonly group: GroupSummary }) => {
  const { healthy_count: healthy, member_count: members } = group;
  const text = `${healthy} of ${members} healthy`;
  const tone = healthTone(group);
  return (
    <span className="inline-flex items-center gap-2.5">
      {members > MARKS_MAX ? (
        <Bar share={healthy / members} label={text} tone={tone} className="w-24" />
      ) : (
        <span aria-hidden="true" className="inline-flex gap-1">
          {Array.from({ length: members }, (_, index) => (
            <span
              key={index}
              className={classNames(
                'size-2.5 rounded-full border-[1.5px]',
                index < healthy ? 'border-good bg-good' : 'border-bad',
              )}
            />
          ))}
        </span>
      )}
      <span className={classNames('whitespace-nowrap font-medium', TONE_CLASSES[tone])}>{text}</span>
    </span>
  );
};

const TONE_CLASSES = { good: 'text-good', warn: 'text-warn', bad: 'text-bad' } as const;

const healthTone = (group: GroupSummary): keyof typeof TONE_CLASSES => {
  if (isDown(group)) return 'bad';
  return group.unhealthy_count > 0 ? 'warn' : 'good';
};
