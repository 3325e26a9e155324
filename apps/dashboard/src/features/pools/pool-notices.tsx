// What must not be overlooked: pools that nobody serves, and regions that did not answer.
import type { GroupSummary } from '@tunnel/contract';
import { durationText, plural } from '../../ui/format.ts';
import { Notice } from '../../ui/notice.tsx';
import { useNow } from '../../ui/now.ts';
import { sentence } from '../../ui/problem-text.ts';
import { isDown } from './filter.ts';
import { type PoolsSeen, silentRegions } from './pools-seen.ts';

const NAMED_MAX = 5;

/** The frame is always there: screen readers tell what appears in it. */
export const PoolNotices = ({ seen }: { readonly seen: PoolsSeen }) => {
  const down = seen.groups.filter(isDown);
  return (
    <div role="status" className="space-y-3">
      {down.length > 0 && (
        <Notice tone="bad">
          <strong className="font-semibold">
            {plural(down.length, 'pool has', 'pools have')} no healthy member: {namesOf(down)}.
          </strong>{' '}
          Visitors get an error (502) there.
        </Notice>
      )}
      {seen.warnings.map((warning) => (
        <RegionNotice key={warning} warning={warning} seen={seen} />
      ))}
    </div>
  );
};

const RegionNotice = ({ warning, seen }: { readonly warning: string; readonly seen: PoolsSeen }) => {
  const [region] = silentRegions([warning]);
  const since = region === undefined ? undefined : seen.oldSince[region];
  const age = useNow((now) => (since === undefined ? '' : durationText(now - since)));
  return (
    <Notice tone="warn">
      {since === undefined ? (
        sentence(warning)
      ) : (
        <>
          Region {region} did not answer. Its pools are shown as they were <span aria-hidden="true">{age} ago</span>
          <span className="sr-only">before</span>; it is asked again every 2 seconds.
        </>
      )}
    </Notice>
  );
};

const namesOf = (groups: readonly GroupSummary[]): string => {
  const names = groups.slice(0, NAMED_MAX).map(({ name }) => name);
  const more = groups.length - names.length;
  return names.join(', ') + (more > 0 ? ` and ${more} more` : '');
};
