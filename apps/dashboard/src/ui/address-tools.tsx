// Beside a public address: open it, and copy it. Above a row that can be pressed as a whole.
import { buttonClass, CopyButton } from './button.tsx';
import { classNames } from './class-names.ts';
import { Icon } from './icon.tsx';

interface AddressToolsProps {
  readonly text: string;
  /** null: nothing to open. */
  readonly href: string | null;
  readonly className?: string;
}

export const AddressTools = ({ text, href, className }: AddressToolsProps) => (
  <span className={classNames('relative z-1 -my-1.5 inline-flex shrink-0', className)}>
    {href !== null && (
      <a
        href={href}
        target="_blank"
        rel="noreferrer"
        title="Open in a new tab"
        aria-label={`Open ${text}`}
        className={buttonClass('quiet', 'small', 'w-8 px-0!')}
      >
        <Icon name="outside" />
      </a>
    )}
    <CopyButton text={text} label={`Copy ${text}`} />
  </span>
);
