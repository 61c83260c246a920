"""A data set in PandaChat-RAG-sl's format, small and our own: four Slovenian questions of three documents."""

import json
import math

GARDEN, CAT, BREAD = "splet.1", "splet.2", "splet.3"
TEXTS = {
    GARDEN: "Vrtna opravila<p><p>V vrtu zraste največ zelenjave poleti. Paradižnik potrebuje sonce in redno zalivanje."
    "<p>Jeseni vrt pognojimo s kompostom.<p>",
    CAT: "Mačke<p><p>Mačka prespi večino dneva. Mladi mucki potrebujejo še več spanja.<p>Mačkam ne dajemo mleka.<p>",
    BREAD: "Kruh<p><p>Testo vzhaja na toplem eno uro. Pečemo ga v vroči pečici.<p>Žemlje pečemo krajši čas.<p>",
}
ASKED = (
    ("Kdaj raste na vrtovih največ zelenjave?", GARDEN, "Poleti."),
    ("Koliko spijo mačke?", CAT, "Večino dneva."),
    ("Kako dolgo vzhaja testo?", BREAD, "Eno uro."),
    ("S čim gnojimo vrt?", GARDEN, "S kompostom."),
)
QUERIES = tuple(query for query, _, _ in ASKED)


def items():
    return [
        {
            "query": query,
            "answer": answer,
            "document": document,
            "text": TEXTS[document].replace("<p><p>", f"<p>{query}<p>", 1),
            "text_without_Q": TEXTS[document],
            "multi_questions_doc": "x" if document == GARDEN else math.nan,
        }
        for query, document, answer in ASKED
    ]


def write_set(path):
    """The data set as a file that, as the real one, has NaN in it."""
    path.write_text(json.dumps(items()), encoding="utf-8")
    return path


def mark_of(item):
    return item["multi_questions_doc"] if item["document"] == GARDEN else None


def submission(*sources, **changes):
    """A submission with these sources, one list a question."""
    rows = [
        item | {"multi_questions_doc": mark_of(item), "sources": list(found)}
        for item, found in zip(items(), sources, strict=True)
    ]
    return {"eval_scenario": "aqa-sl", "system": "ours", "time_per_question": 0.5, "df": rows} | changes
