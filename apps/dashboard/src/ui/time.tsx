// A moment: relative, and exact as its title. And how long something lasts that may still go on.
import { agoText, durationText, momentText } from './format.ts';
import { useNow } from './now.ts';

/** `at`: an ISO time of the API. */
export const Time = ({ at }: { readonly at: string }) => {
  const moment = Date.parse(at);
  const text = useNow((now) => agoText(moment, now));
  return (
    <time dateTime={at} title={momentText(moment)} className="whitespace-nowrap">
      {text}
    </time>
  );
};

/** `until` null: it goes on. */
export const Duration = ({ from, until }: { readonly from: string; readonly until: string | null }) => {
  const text = useNow((now) => durationText((until === null ? now : Date.parse(until)) - Date.parse(from)));
  return <span className="whitespace-nowrap">{text}</span>;
};
