/** The next request of a side as a program. */
import { useState, type ReactElement } from 'react';
import { useStatus } from '../../api/names.ts';
import { Choice } from '../../components/choice.tsx';
import { CodeBlock } from '../../components/code-block.tsx';
import { codeOf, languages, type Language } from './formats/code.ts';
import { SettingError } from './formats/request.ts';
import { shortened } from './formats/shortened.ts';
import type { NextRequest } from './next-request.ts';
import styles from './playground.module.css';

const endings: { readonly [E in NextRequest['ends']]: string } = {
  draft: 'Ends with the message that you are writing.',
  asked: 'Asks for the last answer once more.',
  example: 'Has an example message until you write one.',
};

/** What a view of the next request shows above it, or in its place where a setting is wrong. */
export function NextHint({ next }: { readonly next: NextRequest | SettingError }): ReactElement {
  if (next instanceof SettingError) {
    return <p className={styles.hint}>There is no request yet. {next.message}</p>;
  }
  return <p className={styles.hint}>{endings[next.ends]}</p>;
}

export function CodeView({ next }: { readonly next: NextRequest | SettingError }): ReactElement {
  const [language, setLanguage] = useState<Language>('curl');
  const url = useStatus().data?.url;
  return (
    <div className={styles.raw}>
      <div>
        <Choice
          label="Language"
          options={languages.map((value) => ({ value, label: value }))}
          value={language}
          onChange={(value) => setLanguage(languages.find((each) => each === value) ?? 'curl')}
        />
      </div>
      <NextHint next={next} />
      {next instanceof SettingError || url === undefined ? null : (
        <>
          <CodeBlock
            label={`${language} code`}
            text={codeOf(language, { ...next, body: shortened(next.body) }, url)}
          />
          <p className={styles.hint}>
            The key is read from the environment variable <code>MODEL_GATEWAY_KEY</code>.
            {next.hasPictures ? ' The data of images are shortened.' : ''}
          </p>
        </>
      )}
    </div>
  );
}
