// One step of the first run: its number turns into a mark when it is done.
import type { ReactNode } from 'react';
import { classNames } from '../../ui/class-names.ts';
import { Icon } from '../../ui/icon.tsx';
import type { Step } from './first-run.ts';

export interface FirstRunStepProps {
  readonly number: number;
  readonly title: string;
  readonly step: Step;
  readonly children: ReactNode;
}

export const FirstRunStep = ({ number, title, step, children }: FirstRunStepProps) => (
  <li data-step={number} data-done={step.isDone} className="flex gap-4">
    <span
      aria-hidden="true"
      className={classNames(
        'grid size-7 shrink-0 place-items-center rounded-full border font-medium text-sm transition-colors duration-300',
        step.isDone ? 'border-good bg-good-soft text-good' : 'border-line bg-page text-muted',
      )}
    >
      {step.isDone ? <Icon name="check" className="size-4" /> : number}
    </span>
    <div className="min-w-0 flex-1">
      <h2 className="mt-0.5 mb-2 font-semibold">{title}</h2>
      {children}
      <p role="status" className={classNames('mt-2 flex items-center gap-2 text-sm', noteClass(step))}>
        {!step.isDone && step.isTrouble !== true && (
          <span aria-hidden="true" className="size-1.5 shrink-0 animate-pulse rounded-full bg-current" />
        )}
        <span>
          {step.isDone && <span className="font-medium">Done. </span>}
          {step.note}
        </span>
      </p>
    </div>
  </li>
);

const noteClass = ({ isDone, isTrouble }: Step): string => {
  if (isDone) return 'text-good';
  return isTrouble === true ? 'text-warn' : 'text-muted';
};
