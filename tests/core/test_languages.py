"""A text in another language is not read; English is, however short or terse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core.diagnosis.languages import is_read

OTHERS = {
    "German": """
        Die 64-jährige Patientin stellte sich am Montag mit seit drei Tagen bestehender Atemnot und Husten in
        der Notaufnahme vor. Sie hatte kein Fieber. Im Röntgenbild zeigte sich ein Infiltrat im linken
        Unterlappen.
        """,
    "terse German": """
        RR 120/80, HF 72, T 36,8. Lunge: VAG bds., keine RG. Abdomen weich, kein DS. EKG: SR, keine ERBST.
        Labor: CRP 12, Leukos 9,8, Krea 1,1. Procedere: Amoxicillin 1 g, Ibuprofen b. B., Kontrolle am Montag.
        """,
    "German, of abbreviations": """
        NSTEMI, Z.n. PCI 2019, arterielle Hypertonie, COPD. ASS, Ramipril, Metformin. CRP, Troponin und BNP
        erhöht, EKG: SR. Echo: EF 45 %. Verlauf komplikationslos, Entlassung in gutem Zustand.
        """,
    "French": """
        La patiente de 64 ans s'est présentée lundi aux urgences avec une dyspnée et une toux depuis trois
        jours. Elle n'avait pas de fièvre. On a commencé un traitement par amoxicilline, et elle est rentrée à
        la maison vendredi.
        """,
    "Spanish": """
        La paciente de 64 años acudió el lunes a urgencias con disnea y tos desde hace tres días. No tenía
        fiebre. Se inició tratamiento con amoxicilina y fue dada de alta el viernes en buen estado general.
        """,
    "Dutch": """
        De 64-jarige patiënte kwam maandag op de spoedeisende hulp met sinds drie dagen kortademigheid en
        hoesten. Ze had geen koorts. We begonnen met amoxicilline en ze ging vrijdag in goede conditie naar
        huis.
        """,
    "Polish": """
        Pacjentka zgłosiła się w poniedziałek na izbę przyjęć z dusznością i kaszlem trwającymi od trzech dni.
        Nie miała gorączki. Włączono amoksycylinę, w piątek wypisano ją do domu w stanie dobrym.
        """,
    "Chinese": "患者周一因咳嗽三天来院，无发热，胸片示左下肺炎，给予阿莫西林治疗，周五出院。",
    "Japanese": "月曜日から咳が続き、熱はありません。左下肺に肺炎を認めました。",
    "Russian": "Пациентка обратилась в понедельник с кашлем и одышкой в течение трёх дней. Температуры не было.",
    "Greek": "Η ασθενής προσήλθε τη Δευτέρα με βήχα και δύσπνοια. Δεν είχε πυρετό.",
    "Arabic": "حضرت المريضة يوم الاثنين بسبب سعال وضيق في التنفس منذ ثلاثة أيام",
    "Korean": "환자는 월요일에 기침과 호흡곤란으로 내원하였다. 발열은 없었다.",
}

ENGLISH = (
    "",
    "Fever.",
    "BP 120/80, HR 72. NAD. CTAB.",
    """
        BP 120/80, HR 72, T 98.6. NAD. HEENT: PERRLA, EOMI. Neck supple, no LAD. Lungs CTAB. CV RRR, no m/r/g.
        Abd soft, NT/ND, +BS. Ext no c/c/e. Neuro A&Ox3, CN II-XII intact. Labs: WBC 9.8, Hgb 13.2, Plt 240, Na
        138, K 4.1, Cr 0.9. A/P: CAP. Azithro 500 mg x1 then 250 mg QD x4d. F/u PCP 1 wk.
        """,
    """
        sudden weakness of the right arm, slurred speech, stroke pager activated at 14:58, no haemorrhage, left
        M1 occlusion
        """,
    """
        Meds: lisinopril 10 mg, metformin 500 mg BID, atorvastatin 40 mg, ASA 81 mg, omeprazole 20 mg,
        sertraline 50 mg, levothyroxine 75 mcg, albuterol inhaler prn, gabapentin 300 mg TID, tamsulosin 0.4 mg.
        """,
    """
        [doctor] any fever ? [patient] no [doctor] okay and how is the knee ? [patient] it 's still pretty sore
        when i climb
        """,
    """
        Cormack-Lehane grade 3 view, two attempts with a standard blade failed, videolaryngoscope successful at
        the third attempt, lowest saturation 84 %, dental injury, difficult airway letter handed to the patient
        on discharge
        """,
    "Na⁺ 138, α-blocker stopped, 5 µg, β-hCG negative",
    "ＢＰ １２０／８０, seen on Monday with a cough",
)


@pytest.mark.parametrize("language", OTHERS)
def test_a_text_in_another_language_is_not_read(language: str) -> None:
    assert not is_read(OTHERS[language])


@pytest.mark.parametrize("text", ENGLISH)
def test_english_is_read_however_terse(text: str) -> None:
    assert is_read(text)


@pytest.mark.parametrize("text", ["Fieber seit drei Tagen.", "toux sèche", "dolor torácico agudo"])
def test_what_is_too_short_to_tell_is_read(text: str) -> None:
    assert is_read(text)


def test_a_few_foreign_words_make_no_foreign_text() -> None:
    quoted = (
        'She said "mir ist schwindlig" and that she had fallen at home on Monday; her daughter translated the rest.'
    )
    assert is_read(f"{quoted} No head injury, no loss of consciousness. Blood pressure 104/60 lying, 88/50 standing.")


@given(st.text())
def test_any_text_is_read_or_not(text: str) -> None:
    assert is_read(text) in {True, False}
