// How many members of a pool are healthy: a mark for each, filled or hollow, and the number in words beside it.
import type { GroupSummary } from '@tunnel/contract';
import { Bar } from '../../ui/bar.tsx';
import { classNames } from '../../ui/class-names.ts';
import { isDown } from './filter.ts';

/** Of a larger pool a bar says more. */
const MARKS_MAX = 12;

export const HealthMarks = ({ group }: { readonly group: GroupSummary }) => {
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
      <span className={classNames('whitespace-nowrap font-medium', WORDS[tone])}>{text}</span>
    </span>
  );
};

const WORDS = { good: 'text-good', warn: 'text-warn', bad: 'text-bad' } as const;

const healthTone = (group: GroupSummary): keyof typeof WORDS => {
  if (isDown(group)) return 'bad';
  return group.unhealthy_count > 0 ? 'warn' : 'good';
};
