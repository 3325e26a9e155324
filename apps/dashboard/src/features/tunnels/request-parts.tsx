// The headers and the body of one side of a captured request.
import { CopyButton } from '../../ui/copy-button.tsx';
import type { BodyPreview } from './request-words.ts';

export interface HeaderTableProps {
  readonly caption: string;
  readonly headers: Readonly<Record<string, string>>;
}

export const HeaderTable = ({ caption, headers }: HeaderTableProps) => {
  const lines = Object.entries(headers);
  if (lines.length === 0) return <p className="text-muted text-sm">No headers.</p>;
  return (
    <table className="w-full table-fixed border-collapse text-left text-sm">
      <caption className="sr-only">{caption}</caption>
      <thead className="sr-only">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(([name, value]) => (
          <tr key={name} className="border-line border-b align-top last:border-0">
            <th scope="row" className="w-2/5 break-words py-1 pr-3 font-mono font-normal text-muted">
              {name}
            </th>
            <td className="break-words py-1 font-mono">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
};

export interface BodyViewProps {
  readonly label: string;
  readonly preview: BodyPreview;
}

export const BodyView = ({ label, preview: { text, note } }: BodyViewProps) => (
  <div className="mt-3">
    {text !== null && (
      <div className="relative">
        {/* It may be longer than its place: the keyboard must be able to scroll it. */}
        <pre
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a place that scrolls
          tabIndex={0}
          role="region"
          aria-label={label}
          className="max-h-80 overflow-auto whitespace-pre-wrap break-words rounded-md border border-line bg-sunken p-3 pr-11 font-mono text-sm"
        >
          {text}
        </pre>
        <span className="absolute top-1 right-1">
          <CopyButton text={text} label={`Copy: ${label}`} />
        </span>
      </div>
    )}
    {note !== null && <p className="mt-1 text-muted text-sm">{note}</p>}
  </div>
);
