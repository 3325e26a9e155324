// Buttons next to a public address, to open and copy it. The buttons stay clickable inside a row that is a link as a whole.
import { buttonClass, CopyButton } from './button.tsx';
import { classNames } from './class-names.ts';
import { Icon } from './icon.tsx';

interface AddressToolsProps {
  readonly text: string;
  /** URL to open in a new tab. Null if browsers cannot open the address. */
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
